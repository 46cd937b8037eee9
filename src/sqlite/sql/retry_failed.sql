-- Brings failed items below their ceiling back. ?1 queue ?2 ceiling for all, or NULL ?3 ceiling of items without one
UPDATE ingest_queue SET status = 'pending', run_at = NULL, started_at = NULL, finished_at = NULL
 WHERE queue = ?1 AND status = 'failed' AND gave_up = 0 AND retries < coalesce(?2, max_retries, ?3)
