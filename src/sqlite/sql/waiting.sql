-- Returns when the oldest claimable item was enqueued, when the next delayed one is due, and how many are not due yet.
-- Only the first row of each priority and of each group is read. ?1 queue ?2 now in ms
WITH RECURSIVE
    priorities (priority) AS (
        SELECT max(priority) FROM ingest_queue INDEXED BY ingest_queue_ready
         WHERE queue = ?1 AND status = 'pending' AND run_at IS NULL AND behind = 0
        UNION ALL
        SELECT (SELECT max(priority) FROM ingest_queue INDEXED BY ingest_queue_ready
                 WHERE queue = ?1 AND status = 'pending' AND run_at IS NULL AND behind = 0
                   AND priority < priorities.priority)
          FROM priorities WHERE priority IS NOT NULL),
    first (id) AS (
        SELECT (SELECT min(id) FROM ingest_queue INDEXED BY ingest_queue_ready
                 WHERE queue = ?1 AND status = 'pending' AND run_at IS NULL AND behind = 0
                   AND priority = priorities.priority)
          FROM priorities
        UNION ALL
        SELECT (SELECT min(id) FROM ingest_queue INDEXED BY ingest_queue_group
                 WHERE queue = ?1 AND group_key = membox_queue_groups.group_key AND status = 'pending'
                   AND (run_at IS NULL OR attempt > 0) AND run_at IS NULL)
          FROM membox_queue_groups WHERE queue = ?1 AND pending > 0)
SELECT (SELECT enqueued_at FROM ingest_queue WHERE id = (SELECT min(id) FROM first)),
       (SELECT min(run_at) FROM ingest_queue INDEXED BY ingest_queue_delayed
         WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL),
       (SELECT count(*) FROM ingest_queue INDEXED BY ingest_queue_delayed
         WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND run_at > ?2)
