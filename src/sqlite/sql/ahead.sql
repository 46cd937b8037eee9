-- Claims that would last longer than they were granted, because the clock went back, or whose lease is no time at all.
-- ?1 queue ?2 now ?3 lease_ms of the queue ?4 how many
SELECT id, attempt, claim_token, retries, max_retries, worker, started_at, cancelled, batch, holder,
       lease_ms
  FROM ingest_queue INDEXED BY ingest_queue_leases
 WHERE queue = ?1 AND status = 'processing' AND lease_until > ?2 + coalesce(lease_ms, ?3)
 LIMIT ?4
