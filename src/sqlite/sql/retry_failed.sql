-- Makes one failed item below its retry limit pending, unless its key is in use again.
-- ?1 id ?2 queue ?3 retry limit for all, or NULL ?4 retry limit of items without one ?5 run_at or NULL
UPDATE ingest_queue SET status = 'pending', run_at = ?5, started_at = NULL, finished_at = NULL, worker = NULL
 WHERE id = ?1 AND queue = ?2 AND status = 'failed' AND gave_up = 0 AND retries < coalesce(?3, max_retries, ?4)
   AND NOT EXISTS (SELECT 1 FROM ingest_queue AS other
                    WHERE coalesce(other.home, other.queue) = coalesce(ingest_queue.home, ingest_queue.queue)
                      AND other.dedup_key = ingest_queue.dedup_key
                      AND other.status IN ('pending', 'processing', 'blocked'))
