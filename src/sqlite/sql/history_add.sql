-- Records how an attempt ended. ?1 item ?2 attempt ?3 ending ?4 worker ?5 started_at ?6 now as text ?7 error
INSERT OR REPLACE INTO main.membox_queue_history (item, attempt, ending, worker, started_at, ended_at, error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
