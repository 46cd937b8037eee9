-- What a claim made now would find: the first ready item, something due, something expired; and whether the queue is
-- paused.
-- ?1 queue ?2 now ?3 lease_ms of the queue
SELECT (SELECT id FROM ingest_queue INDEXED BY ingest_queue_ready
         WHERE queue = ?1 AND status = 'pending' AND run_at IS NULL AND behind = 0
         ORDER BY priority DESC, id LIMIT 1),
       EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_delayed
                WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND run_at <= ?2)
    OR EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_delayed
                WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND run_at >= ''),
       EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_leases
                WHERE queue = ?1 AND status = 'processing' AND lease_until <= ?2)
    OR EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_leases
                WHERE queue = ?1 AND status = 'processing' AND lease_until IS NULL
                  AND coalesce(unixepoch(started_at) * 1000 <= ?2 - ?3
                               OR unixepoch(started_at) * 1000 > ?2 + 1000, 1)),
       EXISTS (SELECT 1 FROM membox_queue_meta WHERE key = 'paused:' || ?1)
