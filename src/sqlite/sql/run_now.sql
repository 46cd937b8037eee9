-- Makes a delayed item due now. ?1 id ?2 queue
UPDATE main.ingest_queue SET run_at = NULL
 WHERE id = ?1 AND (queue = ?2 OR home = ?2) AND status = 'pending' AND run_at IS NOT NULL
