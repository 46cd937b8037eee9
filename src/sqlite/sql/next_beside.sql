-- Finds the first claimable item in the group of an item; none if that item has no group. ?1 queue ?2 id
SELECT id FROM ingest_queue INDEXED BY ingest_queue_front
 WHERE queue = ?1 AND group_key = (SELECT group_key FROM ingest_queue WHERE id = ?2)
   AND status = 'pending' AND behind = 0 AND run_at IS NULL
 ORDER BY id LIMIT 1
