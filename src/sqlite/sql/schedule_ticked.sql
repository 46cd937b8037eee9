-- Records a tick and sets the next one. ?1 queue ?2 name ?3 next_at ?4 now ?5 id of the item it enqueued, or NULL
UPDATE membox_queue_schedules SET next_at = ?3, last_at = ?4, last_id = coalesce(?5, last_id) WHERE queue = ?1 AND name = ?2
