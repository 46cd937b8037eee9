-- Finds claims whose lease has expired, and rows that another program claimed without a lease more than one lease ago.
-- ?1 queue ?2 now ?3 lease_ms of the queue ?4 how many
SELECT * FROM (
    SELECT id, attempt, claim_token, retries, max_retries, worker, started_at, cancelled, batch, holder,
           lease_ms, group_key IS NOT NULL
      FROM ingest_queue INDEXED BY ingest_queue_leases
     WHERE queue = ?1 AND status = 'processing' AND lease_until <= ?2
     ORDER BY lease_until LIMIT ?4)
UNION ALL
SELECT * FROM (
    SELECT id, attempt, claim_token, retries, max_retries, worker, started_at, cancelled, batch, holder,
           lease_ms, group_key IS NOT NULL
      FROM ingest_queue INDEXED BY ingest_queue_leases
     WHERE queue = ?1 AND status = 'processing' AND lease_until IS NULL
       AND (unixepoch(started_at) * 1000 <= ?2 - ?3 OR unixepoch(started_at) * 1000 > ?2 + 1000)
     LIMIT ?4)
