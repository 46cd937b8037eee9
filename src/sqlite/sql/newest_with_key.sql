-- Finds the newest item with this key. ?1 key ?2 queue
SELECT id FROM main.ingest_queue INDEXED BY ingest_queue_keys
 WHERE queue = ?2 AND dedup_key = ?1 ORDER BY id DESC LIMIT 1
