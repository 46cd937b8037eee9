-- Removes a done item, unless its key is still reserved. ?1 id ?2 queue ?3 now
DELETE FROM main.ingest_queue
 WHERE id = ?1 AND queue = ?2 AND status = 'done' AND NOT coalesce(key_until > ?3, 0)
