-- Counts the items of a queue: pending, processing, done, failed, blocked, cancelled. Only those in progress are counted
-- one by one. ?1 queue
SELECT active - processing, processing, done, failed, blocked, cancelled
  FROM (SELECT active, done, failed, blocked, cancelled,
               (SELECT count(*) FROM main.ingest_queue INDEXED BY ingest_queue_leases
                 WHERE queue = ?1 AND status = 'processing') AS processing
          FROM main.membox_queue_counts WHERE queue = ?1)
