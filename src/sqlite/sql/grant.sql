-- Gives rows that another program claimed without a lease or a start time one lease from now; at most ?4 of them.
-- How long they have been held is unknown. ?1 queue ?2 lease_until ?3 lease_ms ?4 how many
UPDATE ingest_queue SET lease_until = ?2, lease_ms = ?3
 WHERE id IN (SELECT id FROM ingest_queue INDEXED BY ingest_queue_leases
               WHERE queue = ?1 AND status = 'processing' AND lease_until IS NULL AND unixepoch(started_at) IS NULL
               LIMIT ?4)
