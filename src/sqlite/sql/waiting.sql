-- When the oldest pending item was enqueued, and when the next delayed one falls due. ?1 queue
SELECT (SELECT enqueued_at FROM ingest_queue
         WHERE id = (SELECT min(id) FROM (
             SELECT min(id) AS id FROM ingest_queue INDEXED BY ingest_queue_ready
              WHERE queue = ?1 AND status = 'pending' AND run_at IS NULL AND behind = 0
             UNION ALL
             SELECT min(id) FROM ingest_queue INDEXED BY ingest_queue_delayed
              WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL
             UNION ALL
             SELECT min(id) FROM ingest_queue INDEXED BY ingest_queue_group
              WHERE queue = ?1 AND group_key IS NOT NULL AND status = 'pending' AND (run_at IS NULL OR attempt > 0)))),
       (SELECT min(run_at) FROM ingest_queue INDEXED BY ingest_queue_delayed
         WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL)
