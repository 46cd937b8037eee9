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
