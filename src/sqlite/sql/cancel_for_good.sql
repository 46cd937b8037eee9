-- Keeps an item cancelled that the end of another has cancelled. ?1 id ?2 queue
UPDATE main.ingest_queue SET because = NULL
 WHERE id = ?1 AND (queue = ?2 OR home = ?2) AND status = 'cancelled' AND because IS NOT NULL
