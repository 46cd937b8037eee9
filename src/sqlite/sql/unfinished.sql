-- Whether an item exists and has not ended. ?1 id ?2 queue
SELECT 1 FROM ingest_queue
 WHERE id = ?1 AND (queue = ?2 OR home = ?2) AND status NOT IN ('done', 'failed', 'cancelled')
