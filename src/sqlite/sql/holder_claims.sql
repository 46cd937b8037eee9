-- Finds the claims of one process. ?1 queue ?2 holder ?3 how many
SELECT id, attempt, claim_token, retries, max_retries, worker, started_at, cancelled, batch, holder,
       lease_ms, group_key IS NOT NULL
  FROM ingest_queue INDEXED BY ingest_queue_leases
 WHERE queue = ?1 AND status = 'processing' AND holder = ?2
 LIMIT ?3
