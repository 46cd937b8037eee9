-- How many items of a queue wait or are being worked on. ?1 queue
SELECT (SELECT count(*) FROM ingest_queue INDEXED BY ingest_queue_ready
         WHERE queue = ?1 AND status = 'pending' AND run_at IS NULL)
     + (SELECT count(*) FROM ingest_queue INDEXED BY ingest_queue_delayed
         WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL)
     + (SELECT count(*) FROM ingest_queue INDEXED BY ingest_queue_leases
         WHERE queue = ?1 AND status = 'processing')
