-- Returns one failed item below its retry limit, unless its key is in use again or an item that it needs has failed,
-- was cancelled or is gone. It is pending, or blocked if it still waits for another. A deadline that is over no longer
-- holds.
-- ?1 id ?2 queue ?3 retry limit for all, or NULL ?4 retry limit of items without one ?5 run_at or NULL ?6 now
UPDATE ingest_queue
   SET status = CASE WHEN EXISTS (SELECT 1 FROM membox_queue_after INDEXED BY membox_queue_after_open
                                   WHERE item = ingest_queue.id AND state <> 1) THEN 'blocked' ELSE 'pending' END,
       run_at = ?5, started_at = NULL, finished_at = NULL, worker = NULL,
       expires_at = CASE WHEN expires_at > ?6 THEN expires_at END
 WHERE id = ?1 AND queue = ?2 AND status = 'failed' AND gave_up = 0 AND retries < coalesce(?3, max_retries, ?4)
   AND NOT EXISTS (SELECT 1 FROM membox_queue_after INDEXED BY membox_queue_after_open
                    WHERE item = ingest_queue.id AND state <> 1 AND state = 2)
   AND NOT EXISTS (SELECT 1 FROM ingest_queue AS other
                    WHERE coalesce(other.home, other.queue) = coalesce(ingest_queue.home, ingest_queue.queue)
                      AND other.dedup_key = ingest_queue.dedup_key
                      AND other.status IN ('pending', 'processing', 'blocked'))
