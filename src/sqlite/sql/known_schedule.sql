-- Finds a schedule: when it ticks, and its ticks. ?1 queue ?2 name
SELECT cron, every_ms, tz, next_at, last_at, last_id FROM main.membox_queue_schedules WHERE queue = ?1 AND name = ?2
