-- Finds the next item of a group that is claimed as a batch; none if the next one waits for its retry.
-- ?1 queue ?2 id of an item of the group
SELECT id FROM (SELECT id, run_at FROM ingest_queue INDEXED BY ingest_queue_group
                 WHERE queue = ?1 AND group_key = (SELECT group_key FROM ingest_queue WHERE id = ?2)
                   AND status = 'pending' AND (run_at IS NULL OR attempt > 0)
                 ORDER BY id LIMIT 1)
 WHERE run_at IS NULL
