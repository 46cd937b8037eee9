-- Removes what belongs to a done item that remove_done.sql is about to remove. ?1 id ?2 queue ?3 now
INSERT INTO membox_queue_gone
SELECT id, queue, status, group_key, attempt FROM ingest_queue
 WHERE id = ?1 AND queue = ?2 AND status = 'done' AND NOT coalesce(key_until > ?3, 0)
