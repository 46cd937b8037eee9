-- Gives rows that another program took without a lease and without a time, of which nobody knows how long it has held
-- them, one lease from now on, a bounded number. ?1 queue ?2 lease_until ?3 lease_ms ?4 how many
UPDATE ingest_queue SET lease_until = ?2, lease_ms = ?3
 WHERE id IN (SELECT id FROM ingest_queue INDEXED BY ingest_queue_leases
               WHERE queue = ?1 AND status = 'processing' AND lease_until IS NULL AND unixepoch(started_at) IS NULL
               LIMIT ?4)
