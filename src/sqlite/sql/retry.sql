-- Makes one failed or cancelled item pending with its retry count reset, unless its key is in use again.
-- ?1 id ?2 queue ?3 run_at or NULL
UPDATE main.ingest_queue
   SET status = 'pending', retries = 0, gave_up = 0, run_at = ?3, started_at = NULL, finished_at = NULL, worker = NULL,
       cancelled = 0
 WHERE id = ?1 AND queue = ?2 AND status IN ('failed', 'cancelled')
   AND NOT EXISTS (SELECT 1 FROM main.ingest_queue AS other
                    WHERE other.queue = ?2 AND other.dedup_key = ingest_queue.dedup_key
                      AND other.status IN ('pending', 'processing', 'blocked'))
