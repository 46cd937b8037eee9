-- Claims that would last longer than they were granted, because the clock went back. ?1 queue ?2 now ?3 how many
SELECT id, attempt, claim_token, retries, max_retries, worker
  FROM ingest_queue INDEXED BY ingest_queue_leases
 WHERE queue = ?1 AND status = 'processing' AND lease_until > ?2 + lease_ms
 LIMIT ?3
