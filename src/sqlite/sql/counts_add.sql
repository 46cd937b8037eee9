-- Changes the counts of a queue that has some.
-- ?1 queue ?2 pending or processing ?3 done ?4 failed ?5 blocked ?6 cancelled: by how much
UPDATE membox_queue_counts
   SET active = active + ?2, done = done + ?3, failed = failed + ?4, blocked = blocked + ?5, cancelled = cancelled + ?6
 WHERE queue = ?1
