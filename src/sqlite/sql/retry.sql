-- Returns one failed or cancelled item with its retry count reset, unless its key is in use again or an item that it
-- needs has failed, was cancelled or is gone. It is pending, or blocked if it still waits for another. A deadline that
-- is over no longer holds. ?1 id ?2 queue ?3 run_at or NULL ?4 now
UPDATE main.ingest_queue
   SET status = CASE WHEN EXISTS (SELECT 1 FROM main.membox_queue_after INDEXED BY membox_queue_after_open
                                   WHERE item = ingest_queue.id AND state <> 1) THEN 'blocked' ELSE 'pending' END,
       retries = 0, gave_up = 0, run_at = ?3, started_at = NULL, finished_at = NULL, worker = NULL, cancelled = 0,
       because = NULL, expires_at = CASE WHEN expires_at > ?4 THEN expires_at END
 WHERE id = ?1 AND (queue = ?2 OR home = ?2) AND status IN ('failed', 'cancelled')
   AND NOT EXISTS (SELECT 1 FROM main.membox_queue_after INDEXED BY membox_queue_after_open
                    WHERE item = ingest_queue.id AND state <> 1 AND state = 2)
   AND NOT EXISTS (SELECT 1 FROM main.ingest_queue AS other
                    WHERE coalesce(other.home, other.queue) = coalesce(ingest_queue.home, ingest_queue.queue)
                      AND other.dedup_key = ingest_queue.dedup_key
                      AND other.status IN ('pending', 'processing', 'blocked'))
