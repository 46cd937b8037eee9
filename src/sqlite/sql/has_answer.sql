-- Whether an item is done and its key still reserved, so that it answers who asks by that key. ?1 id ?2 now
SELECT 1 FROM main.ingest_queue WHERE id = ?1 AND status = 'done' AND key_until > ?2
