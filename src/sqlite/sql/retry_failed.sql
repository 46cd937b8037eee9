-- Brings failed items below their ceiling back, unless their key is in use again.
-- ?1 queue ?2 ceiling for all, or NULL ?3 ceiling of items without one ?4 run_at or NULL
UPDATE ingest_queue INDEXED BY ingest_queue_finished SET status = 'pending', run_at = ?4, started_at = NULL, finished_at = NULL, worker = NULL
 WHERE queue = ?1 AND status = 'failed' AND gave_up = 0 AND retries < coalesce(?2, max_retries, ?3)
   AND (dedup_key IS NULL OR id = (SELECT max(twin.id) FROM ingest_queue AS twin
                                    WHERE twin.queue = ?1 AND twin.dedup_key = ingest_queue.dedup_key
                                      AND twin.status = 'failed' AND twin.gave_up = 0))
   AND NOT EXISTS (SELECT 1 FROM ingest_queue AS other
                    WHERE other.queue = ?1 AND other.dedup_key = ingest_queue.dedup_key
                      AND other.status IN ('pending', 'processing', 'blocked'))
