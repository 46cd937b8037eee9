-- Returns what a claim made now would find: the first ready item; when the first delayed item is due, the first lease
-- expires, the first schedule is due, the first pause of a group is over; whether the queue is paused, and its stored
-- settings. Then, of all queues of the file, when the first item expires and whether dependents are to be updated. Last,
-- what only other programs write: whether a delayed item or a claim is due by it.
-- ?1 queue ?2 now ?3 lease_ms of the queue ?4 whether to include what only other programs write: times that are not
-- numbers, and claims without a lease
SELECT (SELECT id FROM ingest_queue INDEXED BY ingest_queue_ready
         WHERE queue = ?1 AND status = 'pending' AND run_at IS NULL AND behind = 0
         ORDER BY priority DESC, id LIMIT 1),
       (SELECT run_at FROM ingest_queue INDEXED BY ingest_queue_delayed
         WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL ORDER BY run_at LIMIT 1),
       (SELECT lease_until FROM ingest_queue INDEXED BY ingest_queue_leases
         WHERE queue = ?1 AND status = 'processing' AND lease_until IS NOT NULL ORDER BY lease_until LIMIT 1),
       (SELECT next_at FROM membox_queue_schedules INDEXED BY membox_queue_schedules_next
         WHERE queue = ?1 AND next_at IS NOT NULL ORDER BY next_at LIMIT 1),
       (SELECT until FROM membox_queue_holds INDEXED BY membox_queue_holds_until
         WHERE queue = ?1 AND until IS NOT NULL ORDER BY until LIMIT 1),
       EXISTS (SELECT 1 FROM membox_queue_meta WHERE key = 'paused:' || ?1),
       (SELECT value FROM membox_queue_meta WHERE key = 'settings:' || ?1),
       (SELECT value FROM membox_queue_meta WHERE key = 'group_limit:' || ?1),
       (SELECT expires_at FROM ingest_queue INDEXED BY ingest_queue_expiring
         WHERE expires_at IS NOT NULL AND cancelled = 0 AND status IN ('pending', 'processing', 'blocked')
         ORDER BY expires_at LIMIT 1),
       EXISTS (SELECT 1 FROM membox_queue_awaited WHERE item >= -9223372036854775808),
       ?4 AND EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_delayed
                       WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND run_at >= ''),
       ?4 AND EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_leases
                       WHERE queue = ?1 AND status = 'processing' AND lease_until IS NULL
                         AND coalesce(unixepoch(started_at) * 1000 <= ?2 - ?3
                                      OR unixepoch(started_at) * 1000 > ?2 + 1000, 1))
