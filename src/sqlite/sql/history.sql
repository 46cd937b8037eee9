-- Lists how the attempts of an item ended, oldest first. If the last one succeeded, it is on the row itself.
-- ?1 id ?2 queue ?3 how many, the latest
SELECT * FROM (
    SELECT attempt, ending, worker, started_at, ended_at, error,
           coalesce(queue, (SELECT queue FROM ingest_queue WHERE id = ?1)), stage, content, content_type
      FROM membox_queue_history
     WHERE item = ?1 AND EXISTS (SELECT 1 FROM ingest_queue WHERE id = ?1 AND (queue = ?2 OR home = ?2))
    UNION ALL
    SELECT attempt, 'done', worker, started_at, finished_at, NULL, queue, stage, NULL, NULL FROM ingest_queue
     WHERE id = ?1 AND (queue = ?2 OR home = ?2) AND status = 'done'
     ORDER BY attempt DESC LIMIT ?3)
 ORDER BY attempt
