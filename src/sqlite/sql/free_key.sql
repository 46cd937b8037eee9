-- Takes the key from an item that was cancelled while in progress. ?1 queue ?2 key
UPDATE main.ingest_queue INDEXED BY ingest_queue_key SET dedup_key = NULL
 WHERE coalesce(home, queue) = ?1 AND dedup_key = ?2 AND status IN ('pending', 'processing', 'blocked') AND cancelled = 1
