-- Finds claims that would outlast their lease because the clock was set back, or whose lease end is not a number.
-- ?1 queue ?2 now ?3 lease_ms of the queue ?4 how many
SELECT id, attempt, claim_token, retries, max_retries, worker, started_at, cancelled, batch, holder,
       lease_ms, group_key IS NOT NULL
  FROM ingest_queue INDEXED BY ingest_queue_leases
 WHERE queue = ?1 AND status = 'processing' AND lease_until > ?2 + coalesce(lease_ms, ?3)
 LIMIT ?4
