-- Finds the failed items below their retry limit; of several with one key, the latest.
-- ?1 queue ?2 retry limit for all, or NULL ?3 retry limit of items without one
SELECT id FROM ingest_queue INDEXED BY ingest_queue_finished
 WHERE queue = ?1 AND status = 'failed' AND gave_up = 0 AND retries < coalesce(?2, max_retries, ?3)
   AND (dedup_key IS NULL OR id = (SELECT max(twin.id) FROM ingest_queue AS twin
                                    WHERE coalesce(twin.home, twin.queue) = coalesce(ingest_queue.home, ingest_queue.queue)
                                      AND twin.dedup_key = ingest_queue.dedup_key
                                      AND twin.status = 'failed' AND twin.gave_up = 0
                                      AND twin.retries < coalesce(?2, twin.max_retries, ?3)))
