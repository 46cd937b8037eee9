-- Rows that have come to rest, by when they did: what retention removes first, and failures.
CREATE INDEX ingest_queue_finished ON ingest_queue (queue, status, finished_at)
    WHERE status = 'done' OR status = 'failed' OR status = 'cancelled';

-- Processes that have claimed something of a queue. Each keeps a lock on a byte of the file that bears its number, and the
-- system drops the lock when the process dies.
CREATE TABLE membox_queue_holders (
    queue  TEXT NOT NULL,
    holder INTEGER NOT NULL,
    PRIMARY KEY (queue, holder)
) WITHOUT ROWID;

-- When the last items of a queue, or of a group, were claimed: as many as its rate allows in its period. The empty group
-- stands for the whole queue.
CREATE TABLE membox_queue_starts (
    queue     TEXT NOT NULL,
    group_key TEXT NOT NULL,
    number    INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (queue, group_key, number)
) WITHOUT ROWID;
CREATE INDEX membox_queue_starts_at ON membox_queue_starts (queue, at);

-- Groups that have used up their rate, and until when; nothing of them stands in front.
CREATE TABLE membox_queue_holds (
    queue     TEXT NOT NULL,
    group_key TEXT NOT NULL,
    until     INTEGER NOT NULL,
    PRIMARY KEY (queue, group_key)
) WITHOUT ROWID;
CREATE INDEX membox_queue_holds_until ON membox_queue_holds (queue, until);

-- What is enqueued again and again.
CREATE TABLE membox_queue_schedules (
    queue        TEXT NOT NULL,
    name         TEXT NOT NULL,
    cron         TEXT,
    every_ms     INTEGER,
    tz           TEXT NOT NULL,
    next_at      INTEGER NOT NULL,
    last_at      INTEGER,
    last_id      INTEGER,
    content      TEXT NOT NULL,
    content_type TEXT NOT NULL,
    project      TEXT,
    source_path  TEXT,
    doc_date     TEXT,
    priority     INTEGER NOT NULL,
    max_retries  INTEGER,
    headers      TEXT,
    group_key    TEXT,
    dedup_key    TEXT,
    checksum     INTEGER,
    PRIMARY KEY (queue, name)
) WITHOUT ROWID;
CREATE INDEX membox_queue_schedules_next ON membox_queue_schedules (queue, next_at);

-- How far a handler says it is.
CREATE TABLE membox_queue_progress (
    item     INTEGER PRIMARY KEY,
    attempt  INTEGER NOT NULL,
    fraction REAL NOT NULL,
    note     TEXT
);
