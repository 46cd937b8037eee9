-- How many unfinished rows each group has: who asks, and who lets the next one stand in front, need not read them.
CREATE TABLE membox_queue_groups (
    queue      TEXT NOT NULL,
    group_key  TEXT NOT NULL,
    pending    INTEGER NOT NULL,
    processing INTEGER NOT NULL,
    PRIMARY KEY (queue, group_key)
) WITHOUT ROWID;

-- The rows that an insert or update under way may replace.
CREATE TABLE membox_queue_replaced (
    id        INTEGER PRIMARY KEY,
    queue     TEXT NOT NULL,
    status    TEXT NOT NULL,
    group_key TEXT,
    attempt   INTEGER NOT NULL
);

-- Everything is counted anew: until version 3 a row that was replaced stayed in the counts. A queue that has nothing left
-- is known all the same.
UPDATE membox_queue_counts SET pending = 0, processing = 0, done = 0, failed = 0, blocked = 0, cancelled = 0;
INSERT OR REPLACE INTO membox_queue_counts
    SELECT queue, sum(status = 'pending'), sum(status = 'processing'), sum(status = 'done'), sum(status = 'failed'),
           sum(status = 'blocked'), sum(status = 'cancelled')
      FROM ingest_queue GROUP BY queue;
INSERT INTO membox_queue_groups
    SELECT queue, group_key, sum(status = 'pending'), sum(status = 'processing')
      FROM ingest_queue WHERE group_key IS NOT NULL AND status IN ('pending', 'processing') GROUP BY queue, group_key;
