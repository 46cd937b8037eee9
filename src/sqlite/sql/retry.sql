-- Brings one failed or cancelled item back with a fresh allowance. ?1 id ?2 queue
UPDATE ingest_queue SET status = 'pending', retries = 0, gave_up = 0, run_at = NULL, started_at = NULL, finished_at = NULL
 WHERE id = ?1 AND queue = ?2 AND status IN ('failed', 'cancelled')
