-- Removes a schedule. ?1 queue ?2 name
DELETE FROM membox_queue_schedules WHERE queue = ?1 AND name = ?2
