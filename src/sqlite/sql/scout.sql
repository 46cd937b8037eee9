-- Returns what a claim made now would find: the first ready item; whether an item is due, a lease has expired, a
-- schedule is due or a group's pause is over. Then whether the queue is paused, and its stored settings. Last, whether
-- in any queue of the file dependents are to be updated or an item has expired.
-- ?1 queue ?2 now ?3 lease_ms of the queue ?4 whether to include what only other programs write: times that are not
-- numbers, and claims without a lease
SELECT (SELECT id FROM ingest_queue INDEXED BY ingest_queue_ready
         WHERE queue = ?1 AND status = 'pending' AND run_at IS NULL AND behind = 0
         ORDER BY priority DESC, id LIMIT 1),
       EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_delayed
                WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND run_at <= ?2)
    OR (?4 AND EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_delayed
                        WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND run_at >= '')),
       EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_leases
                WHERE queue = ?1 AND status = 'processing' AND lease_until <= ?2)
    OR (?4 AND EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_leases
                        WHERE queue = ?1 AND status = 'processing' AND lease_until IS NULL
                          AND coalesce(unixepoch(started_at) * 1000 <= ?2 - ?3
                                       OR unixepoch(started_at) * 1000 > ?2 + 1000, 1))),
       EXISTS (SELECT 1 FROM membox_queue_schedules INDEXED BY membox_queue_schedules_next
                WHERE queue = ?1 AND next_at <= ?2),
       EXISTS (SELECT 1 FROM membox_queue_holds INDEXED BY membox_queue_holds_until
                WHERE queue = ?1 AND until <= ?2),
       EXISTS (SELECT 1 FROM membox_queue_meta WHERE key = 'paused:' || ?1),
       (SELECT value FROM membox_queue_meta WHERE key = 'settings:' || ?1),
       (SELECT value FROM membox_queue_meta WHERE key = 'group_limit:' || ?1),
       EXISTS (SELECT 1 FROM membox_queue_awaited WHERE item >= -9223372036854775808)
    OR EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_expiring
                WHERE expires_at IS NOT NULL AND cancelled = 0 AND status IN ('pending', 'processing', 'blocked')
                  AND expires_at <= ?2)
