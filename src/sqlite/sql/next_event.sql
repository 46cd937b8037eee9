-- Returns the next time at which an item is due, a lease ends, a schedule ticks, a group's pause ends, or an item of any
-- queue expires.
-- ?1 queue ?2 now
SELECT min(at) FROM (
    SELECT min(run_at) AS at FROM ingest_queue INDEXED BY ingest_queue_delayed
     WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND run_at > ?2
    UNION ALL
    SELECT min(lease_until) FROM ingest_queue INDEXED BY ingest_queue_leases
     WHERE queue = ?1 AND status = 'processing' AND lease_until > ?2
    UNION ALL
    SELECT min(next_at) FROM membox_queue_schedules INDEXED BY membox_queue_schedules_next
     WHERE queue = ?1 AND next_at > ?2
    UNION ALL
    SELECT min(until) FROM membox_queue_holds INDEXED BY membox_queue_holds_until WHERE queue = ?1 AND until > ?2
    UNION ALL
    SELECT min(expires_at) FROM ingest_queue INDEXED BY ingest_queue_expiring
     WHERE expires_at IS NOT NULL AND cancelled = 0 AND status IN ('pending', 'processing', 'blocked')
       AND expires_at > ?2)
