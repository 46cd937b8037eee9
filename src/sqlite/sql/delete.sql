-- Deletes one item, whatever its status. ?1 id ?2 queue
DELETE FROM main.ingest_queue WHERE id = ?1 AND (queue = ?2 OR home = ?2)
