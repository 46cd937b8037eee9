-- Counts and history: what would cost too much to find out when a caller asks.

-- How many rows of each queue stand in each status: counting them would mean reading them all. Those in progress are few
-- and stand in an index of their own, so `active` counts them with the pending ones: a claim changes no count.
CREATE TABLE membox_queue_counts (
    queue     TEXT PRIMARY KEY,
    active    INTEGER NOT NULL DEFAULT 0,
    done      INTEGER NOT NULL DEFAULT 0,
    failed    INTEGER NOT NULL DEFAULT 0,
    blocked   INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- A row of the queue passes from one status to another. NULL stands for a row that did not exist, or is no more.
CREATE VIEW membox_queue_counted (queue, earlier, later) AS SELECT NULL, NULL, NULL;

CREATE TRIGGER membox_queue_counted INSTEAD OF INSERT ON membox_queue_counted
BEGIN
    INSERT INTO membox_queue_counts (queue, active, done, failed, blocked, cancelled)
    VALUES (NEW.queue,
            (NEW.later IS 'pending' OR NEW.later IS 'processing')
            - (NEW.earlier IS 'pending' OR NEW.earlier IS 'processing'),
            (NEW.later IS 'done') - (NEW.earlier IS 'done'), (NEW.later IS 'failed') - (NEW.earlier IS 'failed'),
            (NEW.later IS 'blocked') - (NEW.earlier IS 'blocked'),
            (NEW.later IS 'cancelled') - (NEW.earlier IS 'cancelled'))
    ON CONFLICT (queue) DO UPDATE
       SET active = active + excluded.active, done = done + excluded.done, failed = failed + excluded.failed,
           blocked = blocked + excluded.blocked, cancelled = cancelled + excluded.cancelled;
END;

CREATE TRIGGER ingest_queue_count_insert AFTER INSERT ON ingest_queue
BEGIN
    INSERT INTO membox_queue_counted VALUES (NEW.queue, NULL, NEW.status);
END;

CREATE TRIGGER ingest_queue_count_update AFTER UPDATE OF status ON ingest_queue
    WHEN OLD.status <> NEW.status AND OLD.queue = NEW.queue
BEGIN
    INSERT INTO membox_queue_counted VALUES (NEW.queue, OLD.status, NEW.status);
END;

-- A row that moves to another queue.
CREATE TRIGGER ingest_queue_count_move AFTER UPDATE OF queue ON ingest_queue
    WHEN OLD.queue <> NEW.queue
BEGIN
    INSERT INTO membox_queue_counted VALUES (OLD.queue, OLD.status, NULL);
    INSERT INTO membox_queue_counted VALUES (NEW.queue, NULL, NEW.status);
END;

-- How attempts ended that did not end well, and stages that were left; the last one that did is on the row itself.
CREATE TABLE membox_queue_history (
    item         INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    ending       TEXT NOT NULL,
    worker       TEXT,
    started_at   TEXT,
    ended_at     TEXT NOT NULL,
    error        TEXT,
    queue        TEXT,
    stage        INTEGER NOT NULL DEFAULT 0,
    content      TEXT,
    content_type TEXT,
    PRIMARY KEY (item, attempt)
) WITHOUT ROWID;
