-- Finds the first claimable item of a queue. ?1 queue
SELECT id FROM ingest_queue INDEXED BY ingest_queue_ready
 WHERE queue = ?1 AND status = 'pending' AND run_at IS NULL AND behind = 0
 ORDER BY priority DESC, id LIMIT 1
