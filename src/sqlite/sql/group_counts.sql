-- Unfinished items of each group. ?1 queue
SELECT group_key, sum(status = 'pending'), sum(status = 'processing') FROM (
    SELECT group_key, status FROM ingest_queue INDEXED BY ingest_queue_group
     WHERE queue = ?1 AND group_key IS NOT NULL AND status = 'pending' AND (run_at IS NULL OR attempt > 0)
    UNION ALL
    SELECT group_key, status FROM ingest_queue INDEXED BY ingest_queue_delayed
     WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND group_key IS NOT NULL AND attempt = 0
    UNION ALL
    SELECT group_key, status FROM ingest_queue INDEXED BY ingest_queue_working
     WHERE queue = ?1 AND group_key IS NOT NULL AND status = 'processing')
 GROUP BY group_key ORDER BY group_key
