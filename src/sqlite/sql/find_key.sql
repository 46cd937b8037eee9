-- The item that has this key: an unfinished one, one whose key is reserved still, or one enqueued after ?4.
-- ?1 queue ?2 key ?3 now ?4 since, or NULL
SELECT id, status FROM ingest_queue INDEXED BY ingest_queue_keys
 WHERE queue = ?1 AND dedup_key = ?2
   AND (status IN ('pending', 'processing', 'blocked') OR key_until > ?3
        OR (julianday(enqueued_at) - 2440587.5) * 86400000.0 > ?4)
 ORDER BY id DESC LIMIT 1
