-- Changes the counts of a queue. ?1 queue ?2 pending ?3 processing ?4 done ?5 failed ?6 blocked ?7 cancelled: by how much
INSERT INTO membox_queue_counts (queue, pending, processing, done, failed, blocked, cancelled)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (queue) DO UPDATE
   SET pending = pending + excluded.pending, processing = processing + excluded.processing,
       done = done + excluded.done, failed = failed + excluded.failed, blocked = blocked + excluded.blocked,
       cancelled = cancelled + excluded.cancelled
