-- Cancels an item that is not in progress. ?1 id ?2 queue ?3 now as text
UPDATE main.ingest_queue SET status = 'cancelled', finished_at = ?3, run_at = NULL
 WHERE id = ?1 AND (queue = ?2 OR home = ?2) AND status IN ('pending', 'blocked')
