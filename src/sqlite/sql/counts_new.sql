-- Begins to count a queue. ?1 queue ?2 pending or processing ?3 done ?4 failed ?5 blocked ?6 cancelled
INSERT INTO membox_queue_counts (queue, active, done, failed, blocked, cancelled) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
