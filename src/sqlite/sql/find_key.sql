-- Finds the item that has this key: the unfinished one, else a recent one whose key is reserved or that was enqueued
-- after ?4. An item cancelled while in progress does not count: an enqueue may take its key. Only the latest items are
-- checked: no item gets a key that is reserved, and a key may have been used a million times.
-- ?1 queue ?2 key ?3 now ?4 since, or NULL
SELECT id, status, stage FROM main.ingest_queue
 WHERE id = coalesce(
       (SELECT id FROM main.ingest_queue INDEXED BY ingest_queue_key
         WHERE coalesce(home, queue) = ?1 AND dedup_key = ?2 AND status IN ('pending', 'processing', 'blocked') AND cancelled = 0),
       (SELECT id FROM (SELECT id, key_until, enqueued_at FROM main.ingest_queue INDEXED BY ingest_queue_keys
                         WHERE coalesce(home, queue) = ?1 AND dedup_key = ?2 ORDER BY id DESC LIMIT 8)
         WHERE key_until > ?3 OR (julianday(enqueued_at) - 2440587.5) * 86400000.0 > ?4
         LIMIT 1))
