-- Counts and history: what would cost too much to find out when somebody asks.

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
    queue        TEXT,
    stage        INTEGER NOT NULL DEFAULT 0,
    content      TEXT,
    content_type TEXT,
    PRIMARY KEY (item, attempt)
) WITHOUT ROWID;
