-- Records how an attempt ended. ?1 item ?2 attempt ?3 ending ?4 worker ?5 started_at ?6 now as text ?7 error
INSERT OR REPLACE INTO main.membox_queue_history
    (item, attempt, ending, worker, started_at, ended_at, error, queue, stage)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, (SELECT queue FROM main.ingest_queue WHERE id = ?1),
        coalesce((SELECT stage FROM main.ingest_queue WHERE id = ?1), 0))
