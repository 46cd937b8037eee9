-- Sets the next tick of a schedule. ?1 queue ?2 name ?3 next_at
UPDATE membox_queue_schedules SET next_at = ?3 WHERE queue = ?1 AND name = ?2
