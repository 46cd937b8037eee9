-- What keeps the table true whoever writes to it: claims given back by other programs, groups, counts.

-- A program that knows only membox's columns gives rows back without clearing the claim: the old holder's receipt
-- and lease must not live on.
CREATE TRIGGER ingest_queue_unclaim AFTER UPDATE OF status ON ingest_queue
    WHEN NEW.status = 'pending' AND NEW.claim_token IS NOT NULL
BEGIN
    UPDATE ingest_queue
       SET claim_token = NULL, lease_until = NULL, lease_ms = NULL, worker = NULL, batch = NULL, cancelled = 0
     WHERE id = NEW.id;
END;

-- A group's rows stand in the order of their ids. Those that are pending and ready, or wait for a retry, have entered;
-- the first of them, as many as the group may run beside those in work, stand in front, all others behind.
CREATE VIEW membox_queue_group_moved (queue, group_key) AS SELECT NULL, NULL;

CREATE TRIGGER membox_queue_group_moved INSTEAD OF INSERT ON membox_queue_group_moved
BEGIN
    UPDATE ingest_queue SET behind = 1
     WHERE queue = NEW.queue AND group_key = NEW.group_key AND status = 'pending' AND behind = 0
       AND id NOT IN (
           SELECT id FROM ingest_queue
            WHERE queue = NEW.queue AND group_key = NEW.group_key AND status = 'pending'
              AND (run_at IS NULL OR attempt > 0)
            ORDER BY id
            LIMIT max(0, coalesce((SELECT CAST(value AS INTEGER) FROM membox_queue_meta
                                    WHERE key = 'group_limit:' || NEW.queue), 1)
                         - (SELECT count(*) FROM ingest_queue
                             WHERE queue = NEW.queue AND group_key = NEW.group_key AND status = 'processing')));
    UPDATE ingest_queue SET behind = 0
     WHERE behind = 1 AND id IN (
           SELECT id FROM ingest_queue
            WHERE queue = NEW.queue AND group_key = NEW.group_key AND status = 'pending'
              AND (run_at IS NULL OR attempt > 0)
            ORDER BY id
            LIMIT max(0, coalesce((SELECT CAST(value AS INTEGER) FROM membox_queue_meta
                                    WHERE key = 'group_limit:' || NEW.queue), 1)
                         - (SELECT count(*) FROM ingest_queue
                             WHERE queue = NEW.queue AND group_key = NEW.group_key AND status = 'processing')));
END;

CREATE TRIGGER ingest_queue_group_insert AFTER INSERT ON ingest_queue
    WHEN NEW.group_key IS NOT NULL
BEGIN
    INSERT INTO membox_queue_group_moved VALUES (NEW.queue, NEW.group_key);
END;

CREATE TRIGGER ingest_queue_group_update AFTER UPDATE OF status, run_at, attempt, group_key, queue ON ingest_queue
    WHEN NEW.group_key IS NOT NULL
BEGIN
    INSERT INTO membox_queue_group_moved VALUES (NEW.queue, NEW.group_key);
END;

CREATE TRIGGER ingest_queue_group_leave AFTER UPDATE OF group_key, queue ON ingest_queue
    WHEN OLD.group_key IS NOT NULL
BEGIN
    INSERT INTO membox_queue_group_moved VALUES (OLD.queue, OLD.group_key);
    UPDATE ingest_queue SET behind = 0 WHERE id = NEW.id AND group_key IS NULL AND behind = 1;
END;

CREATE TRIGGER ingest_queue_group_delete AFTER DELETE ON ingest_queue
    WHEN OLD.group_key IS NOT NULL
BEGIN
    INSERT INTO membox_queue_group_moved VALUES (OLD.queue, OLD.group_key);
END;

-- How many rows of each queue stand in each status: counting them would mean reading them all.
CREATE TABLE membox_queue_counts (
    queue      TEXT PRIMARY KEY,
    pending    INTEGER NOT NULL DEFAULT 0,
    processing INTEGER NOT NULL DEFAULT 0,
    done       INTEGER NOT NULL DEFAULT 0,
    failed     INTEGER NOT NULL DEFAULT 0,
    blocked    INTEGER NOT NULL DEFAULT 0,
    cancelled  INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

INSERT INTO membox_queue_counts
    SELECT queue, sum(status = 'pending'), sum(status = 'processing'), sum(status = 'done'), sum(status = 'failed'),
           sum(status = 'blocked'), sum(status = 'cancelled')
      FROM ingest_queue GROUP BY queue;

CREATE TRIGGER ingest_queue_count_insert AFTER INSERT ON ingest_queue
BEGIN
    INSERT INTO membox_queue_counts
    VALUES (NEW.queue, NEW.status = 'pending', NEW.status = 'processing', NEW.status = 'done', NEW.status = 'failed',
            NEW.status = 'blocked', NEW.status = 'cancelled')
    ON CONFLICT (queue) DO UPDATE
       SET pending = pending + excluded.pending, processing = processing + excluded.processing,
           done = done + excluded.done, failed = failed + excluded.failed, blocked = blocked + excluded.blocked,
           cancelled = cancelled + excluded.cancelled;
END;

CREATE TRIGGER ingest_queue_count_update AFTER UPDATE OF status ON ingest_queue
    WHEN OLD.status <> NEW.status AND OLD.queue = NEW.queue
BEGIN
    UPDATE membox_queue_counts
       SET pending = pending + (NEW.status = 'pending') - (OLD.status = 'pending'),
           processing = processing + (NEW.status = 'processing') - (OLD.status = 'processing'),
           done = done + (NEW.status = 'done') - (OLD.status = 'done'),
           failed = failed + (NEW.status = 'failed') - (OLD.status = 'failed'),
           blocked = blocked + (NEW.status = 'blocked') - (OLD.status = 'blocked'),
           cancelled = cancelled + (NEW.status = 'cancelled') - (OLD.status = 'cancelled')
     WHERE queue = NEW.queue;
END;

CREATE TRIGGER ingest_queue_count_delete AFTER DELETE ON ingest_queue
BEGIN
    UPDATE membox_queue_counts
       SET pending = pending - (OLD.status = 'pending'), processing = processing - (OLD.status = 'processing'),
           done = done - (OLD.status = 'done'), failed = failed - (OLD.status = 'failed'),
           blocked = blocked - (OLD.status = 'blocked'), cancelled = cancelled - (OLD.status = 'cancelled')
     WHERE queue = OLD.queue;
END;

-- A row that another program moves to another queue.
CREATE TRIGGER ingest_queue_count_move AFTER UPDATE OF queue ON ingest_queue
    WHEN OLD.queue <> NEW.queue
BEGIN
    UPDATE membox_queue_counts
       SET pending = pending - (OLD.status = 'pending'), processing = processing - (OLD.status = 'processing'),
           done = done - (OLD.status = 'done'), failed = failed - (OLD.status = 'failed'),
           blocked = blocked - (OLD.status = 'blocked'), cancelled = cancelled - (OLD.status = 'cancelled')
     WHERE queue = OLD.queue;
    INSERT INTO membox_queue_counts
    VALUES (NEW.queue, NEW.status = 'pending', NEW.status = 'processing', NEW.status = 'done', NEW.status = 'failed',
            NEW.status = 'blocked', NEW.status = 'cancelled')
    ON CONFLICT (queue) DO UPDATE
       SET pending = pending + excluded.pending, processing = processing + excluded.processing,
           done = done + excluded.done, failed = failed + excluded.failed, blocked = blocked + excluded.blocked,
           cancelled = cancelled + excluded.cancelled;
END;

-- How attempts ended that did not end well; the last one that did is on the row itself.
CREATE TABLE membox_queue_history (
    item       INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    ending     TEXT NOT NULL,
    worker     TEXT,
    started_at TEXT,
    ended_at   TEXT NOT NULL,
    error      TEXT,
    PRIMARY KEY (item, attempt)
) WITHOUT ROWID;

CREATE TRIGGER ingest_queue_history_delete AFTER DELETE ON ingest_queue
    WHEN OLD.attempt > 0
BEGIN
    DELETE FROM membox_queue_history WHERE item = OLD.id;
END;
