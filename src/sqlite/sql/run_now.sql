-- Lets a delayed item fall due at once. ?1 id ?2 queue
UPDATE ingest_queue SET run_at = NULL WHERE id = ?1 AND queue = ?2 AND status = 'pending' AND run_at IS NOT NULL
