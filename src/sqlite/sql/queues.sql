-- Lists all queues with their counts, and their names.
SELECT active - processing, processing, done, failed, blocked, cancelled, queue
  FROM (SELECT queue, active, done, failed, blocked, cancelled,
               (SELECT count(*) FROM ingest_queue INDEXED BY ingest_queue_leases
                 WHERE queue = membox_queue_counts.queue AND status = 'processing') AS processing
          FROM membox_queue_counts)
 ORDER BY queue
