-- Lets all groups of a queue be looked at again, after their limit was changed. ?1 queue
INSERT INTO membox_queue_group_moved (queue, group_key)
SELECT DISTINCT queue, group_key FROM ingest_queue INDEXED BY ingest_queue_group
 WHERE queue = ?1 AND group_key IS NOT NULL AND status = 'pending' AND (run_at IS NULL OR attempt > 0)
