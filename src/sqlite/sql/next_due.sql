-- Returns when a worker is next needed: the earliest delayed item, tick, or end of a group's pause with items pending.
-- ?1 queue ?2 whether ticks count
SELECT min(at) FROM (
    SELECT min(run_at) AS at FROM ingest_queue INDEXED BY ingest_queue_delayed
     WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL
    UNION ALL
    SELECT min(next_at) FROM membox_queue_schedules INDEXED BY membox_queue_schedules_next
     WHERE queue = ?1 AND ?2
    UNION ALL
    SELECT min(until) FROM membox_queue_holds INDEXED BY membox_queue_holds_until
     WHERE queue = ?1 AND EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_group
                                   WHERE queue = ?1 AND group_key = membox_queue_holds.group_key AND status = 'pending'
                                     AND (run_at IS NULL OR attempt > 0)))
