-- Finds the first claimable item of one group. ?1 queue ?2 group
SELECT id FROM ingest_queue INDEXED BY ingest_queue_front
 WHERE queue = ?1 AND group_key = ?2 AND status = 'pending' AND behind = 0 AND run_at IS NULL
 ORDER BY id LIMIT 1
