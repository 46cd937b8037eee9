-- Everything that triggers keep is made anew from the rows: counts, the order of groups, traces of removed rows. A queue
-- that has nothing left is known all the same.
DELETE FROM membox_queue_replaced;
UPDATE membox_queue_counts SET active = 0, done = 0, failed = 0, blocked = 0, cancelled = 0;
INSERT OR REPLACE INTO membox_queue_counts (queue, active, done, failed, blocked, cancelled)
    SELECT queue, sum(status = 'pending' OR status = 'processing'), sum(status = 'done'), sum(status = 'failed'),
           sum(status = 'blocked'), sum(status = 'cancelled')
      FROM ingest_queue GROUP BY queue;
DELETE FROM membox_queue_groups;
INSERT INTO membox_queue_groups
    SELECT queue, group_key, sum(status = 'pending'), sum(status = 'processing')
      FROM ingest_queue WHERE group_key IS NOT NULL AND status IN ('pending', 'processing') GROUP BY queue, group_key;
UPDATE ingest_queue SET behind = 0 WHERE group_key IS NULL AND behind <> 0;
INSERT INTO membox_queue_group_moved SELECT queue, group_key, 0, 0 FROM membox_queue_groups;
DELETE FROM membox_queue_history WHERE item NOT IN (SELECT id FROM ingest_queue);
DELETE FROM membox_queue_progress WHERE item NOT IN (SELECT id FROM ingest_queue);
DELETE FROM membox_queue_steps WHERE item NOT IN (SELECT id FROM ingest_queue);
DELETE FROM membox_queue_after WHERE item NOT IN (SELECT id FROM ingest_queue);
INSERT OR IGNORE INTO membox_queue_awaited SELECT needs FROM membox_queue_after WHERE state <> 1;
