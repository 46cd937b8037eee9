-- The schema of a file of version 5, as that version made it.
CREATE TABLE ingest_queue (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    project      TEXT,
    source_path  TEXT,
    doc_date     TEXT,
    status       TEXT NOT NULL DEFAULT 'pending',
    retries      INTEGER NOT NULL DEFAULT 0,
    error        TEXT,
    enqueued_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    started_at   TEXT,
    finished_at  TEXT,
    queue        TEXT NOT NULL DEFAULT 'ingest',
    content_type TEXT NOT NULL DEFAULT 'text',
    priority     INTEGER NOT NULL DEFAULT 0,
    run_at       INTEGER,
    attempt      INTEGER NOT NULL DEFAULT 0,
    claim_token  INTEGER,
    lease_until  INTEGER,
    lease_ms     INTEGER,
    worker       TEXT,
    holder       INTEGER,
    max_retries  INTEGER,
    gave_up      INTEGER NOT NULL DEFAULT 0,
    group_key    TEXT,
    dedup_key    TEXT,
    headers      TEXT,
    result       TEXT,
    key_until    INTEGER,
    behind       INTEGER NOT NULL DEFAULT 0,
    batch        INTEGER,
    cancelled    INTEGER NOT NULL DEFAULT 0,
    checksum     INTEGER,
    filler       BLOB NOT NULL DEFAULT (zeroblob(57)),
    filler2      BLOB NOT NULL DEFAULT (zeroblob(40)),
    content      TEXT NOT NULL
);
CREATE TABLE membox_queue_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX ingest_queue_ready ON ingest_queue (queue, priority DESC, id)
    WHERE status = 'pending' AND run_at IS NULL AND behind = 0;
CREATE INDEX ingest_queue_delayed ON ingest_queue (queue, run_at)
    WHERE status = 'pending' AND run_at IS NOT NULL;
CREATE INDEX ingest_queue_leases ON ingest_queue (queue, lease_until, lease_ms)
    WHERE status = 'processing';
CREATE INDEX ingest_queue_group ON ingest_queue (queue, group_key, id)
    WHERE group_key IS NOT NULL AND status = 'pending' AND (run_at IS NULL OR attempt > 0);
CREATE INDEX ingest_queue_front ON ingest_queue (queue, group_key, id)
    WHERE group_key IS NOT NULL AND status = 'pending' AND behind = 0;
CREATE INDEX ingest_queue_working ON ingest_queue (queue, group_key, id)
    WHERE group_key IS NOT NULL AND status = 'processing';
CREATE UNIQUE INDEX ingest_queue_key ON ingest_queue (queue, dedup_key)
    WHERE dedup_key IS NOT NULL AND status IN ('pending', 'processing', 'blocked');
CREATE INDEX ingest_queue_keys ON ingest_queue (queue, dedup_key, id)
    WHERE dedup_key IS NOT NULL;
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
CREATE INDEX ingest_queue_finished ON ingest_queue (queue, status, finished_at)
    WHERE status = 'done' OR status = 'failed' OR status = 'cancelled';
CREATE INDEX ingest_queue_heads ON ingest_queue (queue, priority DESC, id)
    WHERE group_key IS NOT NULL AND status = 'pending' AND run_at IS NULL AND behind = 0;
CREATE TABLE membox_queue_holders (
    queue  TEXT NOT NULL,
    holder INTEGER NOT NULL,
    PRIMARY KEY (queue, holder)
) WITHOUT ROWID;
CREATE TABLE membox_queue_starts (
    queue     TEXT NOT NULL,
    group_key TEXT NOT NULL,
    number    INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (queue, group_key, number)
) WITHOUT ROWID;
CREATE INDEX membox_queue_starts_at ON membox_queue_starts (queue, at);
CREATE TABLE membox_queue_holds (
    queue     TEXT NOT NULL,
    group_key TEXT NOT NULL,
    until     INTEGER NOT NULL,
    PRIMARY KEY (queue, group_key)
) WITHOUT ROWID;
CREATE INDEX membox_queue_holds_until ON membox_queue_holds (queue, until);
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
    dedup_key    TEXT, checksum INTEGER,
    PRIMARY KEY (queue, name)
) WITHOUT ROWID;
CREATE INDEX membox_queue_schedules_next ON membox_queue_schedules (queue, next_at);
CREATE TABLE membox_queue_progress (
    item     INTEGER PRIMARY KEY,
    attempt  INTEGER NOT NULL,
    fraction REAL NOT NULL,
    note     TEXT
);
CREATE TRIGGER ingest_queue_changed AFTER UPDATE OF content, content_type, headers ON ingest_queue
    WHEN NEW.checksum IS OLD.checksum
     AND (NEW.content IS NOT OLD.content OR NEW.content_type IS NOT OLD.content_type OR NEW.headers IS NOT OLD.headers)
BEGIN
    UPDATE ingest_queue SET checksum = NULL WHERE id = NEW.id;
END;
CREATE TRIGGER membox_queue_schedule_changed AFTER UPDATE OF content, content_type, headers ON membox_queue_schedules
    WHEN NEW.checksum IS OLD.checksum
     AND (NEW.content IS NOT OLD.content OR NEW.content_type IS NOT OLD.content_type OR NEW.headers IS NOT OLD.headers)
BEGIN
    UPDATE membox_queue_schedules SET checksum = NULL WHERE queue = NEW.queue AND name = NEW.name;
END;
CREATE TABLE membox_queue_groups (
    queue      TEXT NOT NULL,
    group_key  TEXT NOT NULL,
    pending    INTEGER NOT NULL,
    processing INTEGER NOT NULL,
    PRIMARY KEY (queue, group_key)
) WITHOUT ROWID;
CREATE TABLE membox_queue_replaced (
    id        INTEGER PRIMARY KEY,
    queue     TEXT NOT NULL,
    status    TEXT NOT NULL,
    group_key TEXT,
    attempt   INTEGER NOT NULL
);
CREATE VIEW membox_queue_group_moved (queue, group_key, pending, processing) AS SELECT NULL, NULL, NULL, NULL;
CREATE TRIGGER membox_queue_group_moved INSTEAD OF INSERT ON membox_queue_group_moved
BEGIN
    INSERT INTO membox_queue_groups (queue, group_key, pending, processing)
    SELECT NEW.queue, NEW.group_key, NEW.pending, NEW.processing WHERE NEW.pending <> 0 OR NEW.processing <> 0
    ON CONFLICT (queue, group_key) DO UPDATE
       SET pending = pending + excluded.pending, processing = processing + excluded.processing;
    DELETE FROM membox_queue_groups
     WHERE queue = NEW.queue AND group_key = NEW.group_key AND pending = 0 AND processing = 0;
    UPDATE ingest_queue SET behind = 1
     WHERE queue = NEW.queue AND group_key = NEW.group_key AND status = 'pending' AND behind = 0
       AND id NOT IN (
           SELECT id FROM ingest_queue
            WHERE queue = NEW.queue AND group_key = NEW.group_key AND status = 'pending'
              AND (run_at IS NULL OR attempt > 0)
            ORDER BY id
            LIMIT max(0, CASE WHEN EXISTS (SELECT 1 FROM membox_queue_holds
                                            WHERE queue = NEW.queue AND group_key = NEW.group_key) THEN 0
                         ELSE coalesce((SELECT CAST(value AS INTEGER) FROM membox_queue_meta
                                         WHERE key = 'group_limit:' || NEW.queue), 1)
                              - coalesce((SELECT processing FROM membox_queue_groups
                                           WHERE queue = NEW.queue AND group_key = NEW.group_key), 0)
                         END));
    UPDATE ingest_queue SET behind = 0
     WHERE behind <> 0 AND id IN (
           SELECT id FROM ingest_queue
            WHERE queue = NEW.queue AND group_key = NEW.group_key AND status = 'pending'
              AND (run_at IS NULL OR attempt > 0)
            ORDER BY id
            LIMIT max(0, CASE WHEN EXISTS (SELECT 1 FROM membox_queue_holds
                                            WHERE queue = NEW.queue AND group_key = NEW.group_key) THEN 0
                         ELSE coalesce((SELECT CAST(value AS INTEGER) FROM membox_queue_meta
                                         WHERE key = 'group_limit:' || NEW.queue), 1)
                              - coalesce((SELECT processing FROM membox_queue_groups
                                           WHERE queue = NEW.queue AND group_key = NEW.group_key), 0)
                         END));
END;
CREATE TRIGGER ingest_queue_group_insert AFTER INSERT ON ingest_queue
    WHEN NEW.group_key IS NOT NULL OR NEW.behind <> 0
BEGIN
    INSERT INTO membox_queue_group_moved
    SELECT NEW.queue, NEW.group_key, NEW.status = 'pending', NEW.status = 'processing' WHERE NEW.group_key IS NOT NULL;
    UPDATE ingest_queue SET behind = 0 WHERE id = NEW.id AND group_key IS NULL;
END;
CREATE TRIGGER ingest_queue_group_update AFTER UPDATE OF status, run_at, attempt, group_key, queue, id ON ingest_queue
    WHEN NEW.group_key IS OLD.group_key AND NEW.group_key IS NOT NULL AND NEW.queue = OLD.queue
BEGIN
    INSERT INTO membox_queue_group_moved
    VALUES (NEW.queue, NEW.group_key, (NEW.status = 'pending') - (OLD.status = 'pending'),
            (NEW.status = 'processing') - (OLD.status = 'processing'));
END;
CREATE TRIGGER ingest_queue_group_leave AFTER UPDATE OF group_key, queue ON ingest_queue
    WHEN NEW.group_key IS NOT OLD.group_key OR NEW.queue <> OLD.queue
BEGIN
    INSERT INTO membox_queue_group_moved
    SELECT OLD.queue, OLD.group_key, -(OLD.status = 'pending'), -(OLD.status = 'processing')
     WHERE OLD.group_key IS NOT NULL;
    INSERT INTO membox_queue_group_moved
    SELECT NEW.queue, NEW.group_key, NEW.status = 'pending', NEW.status = 'processing' WHERE NEW.group_key IS NOT NULL;
    UPDATE ingest_queue SET behind = 0 WHERE id = NEW.id AND group_key IS NULL AND behind <> 0;
END;
CREATE VIEW membox_queue_gone (id, queue, status, group_key, attempt) AS SELECT NULL, NULL, NULL, NULL, NULL;
CREATE TRIGGER membox_queue_gone INSTEAD OF INSERT ON membox_queue_gone
BEGIN
    UPDATE membox_queue_counts
       SET pending = pending - (NEW.status = 'pending'), processing = processing - (NEW.status = 'processing'),
           done = done - (NEW.status = 'done'), failed = failed - (NEW.status = 'failed'),
           blocked = blocked - (NEW.status = 'blocked'), cancelled = cancelled - (NEW.status = 'cancelled')
     WHERE queue = NEW.queue;
    INSERT INTO membox_queue_group_moved
    SELECT NEW.queue, NEW.group_key, -(NEW.status = 'pending'), -(NEW.status = 'processing')
     WHERE NEW.group_key IS NOT NULL;
    DELETE FROM membox_queue_history WHERE item = NEW.id AND NEW.attempt > 0;
    DELETE FROM membox_queue_progress WHERE item = NEW.id AND NEW.attempt > 0;
END;
CREATE TRIGGER ingest_queue_gone AFTER DELETE ON ingest_queue
BEGIN
    INSERT INTO membox_queue_gone VALUES (OLD.id, OLD.queue, OLD.status, OLD.group_key, OLD.attempt);
    DELETE FROM membox_queue_replaced WHERE id = OLD.id;
END;
CREATE TRIGGER ingest_queue_replace BEFORE INSERT ON ingest_queue
    WHEN EXISTS (SELECT 1 FROM ingest_queue WHERE id = NEW.id)
      OR (NEW.dedup_key IS NOT NULL
          AND EXISTS (SELECT 1 FROM ingest_queue
                       WHERE queue = NEW.queue AND dedup_key = NEW.dedup_key
                         AND status IN ('pending', 'processing', 'blocked')))
BEGIN
    DELETE FROM membox_queue_replaced;
    INSERT INTO membox_queue_replaced
    SELECT id, queue, status, group_key, attempt FROM ingest_queue WHERE id = NEW.id
    UNION
    SELECT id, queue, status, group_key, attempt FROM ingest_queue
     WHERE queue = NEW.queue AND dedup_key = NEW.dedup_key AND status IN ('pending', 'processing', 'blocked');
END;
CREATE TRIGGER ingest_queue_replaced AFTER INSERT ON ingest_queue
    WHEN EXISTS (SELECT 1 FROM membox_queue_replaced)
BEGIN
    INSERT INTO membox_queue_gone
    SELECT id, queue, status, group_key, attempt FROM membox_queue_replaced AS former
     WHERE id = NEW.id OR NOT EXISTS (SELECT 1 FROM ingest_queue WHERE ingest_queue.id = former.id);
    DELETE FROM membox_queue_replaced;
END;
CREATE TRIGGER ingest_queue_replace_by_update BEFORE UPDATE OF id, queue, dedup_key, status ON ingest_queue
    WHEN NEW.id <> OLD.id
      OR (NEW.dedup_key IS NOT NULL AND NEW.status IN ('pending', 'processing', 'blocked')
          AND (NEW.dedup_key IS NOT OLD.dedup_key OR NEW.queue <> OLD.queue
               OR OLD.status NOT IN ('pending', 'processing', 'blocked')))
BEGIN
    DELETE FROM membox_queue_replaced;
    INSERT INTO membox_queue_replaced
    SELECT id, queue, status, group_key, attempt FROM ingest_queue WHERE id = NEW.id AND id <> OLD.id
    UNION
    SELECT id, queue, status, group_key, attempt FROM ingest_queue
     WHERE queue = NEW.queue AND dedup_key = NEW.dedup_key AND status IN ('pending', 'processing', 'blocked')
       AND id <> OLD.id;
END;
CREATE TRIGGER ingest_queue_replaced_by_update AFTER UPDATE OF id, queue, dedup_key, status ON ingest_queue
    WHEN EXISTS (SELECT 1 FROM membox_queue_replaced)
BEGIN
    INSERT INTO membox_queue_gone
    SELECT id, queue, status, group_key, attempt FROM membox_queue_replaced AS former
     WHERE (id = NEW.id AND NEW.id <> OLD.id)
        OR NOT EXISTS (SELECT 1 FROM ingest_queue WHERE ingest_queue.id = former.id);
    DELETE FROM membox_queue_replaced;
END;
CREATE TRIGGER ingest_queue_status_insert BEFORE INSERT ON ingest_queue
    WHEN NEW.status <> 'pending' AND NEW.status <> 'processing' AND NEW.status <> 'done' AND NEW.status <> 'failed'
     AND NEW.status <> 'blocked' AND NEW.status <> 'cancelled'
BEGIN
    SELECT RAISE(ABORT, 'the status of an item is pending, processing, done, failed, blocked or cancelled');
END;
CREATE TRIGGER ingest_queue_status_update BEFORE UPDATE OF status ON ingest_queue
    WHEN NEW.status <> 'pending' AND NEW.status <> 'processing' AND NEW.status <> 'done' AND NEW.status <> 'failed'
     AND NEW.status <> 'blocked' AND NEW.status <> 'cancelled'
BEGIN
    SELECT RAISE(ABORT, 'the status of an item is pending, processing, done, failed, blocked or cancelled');
END;
CREATE TRIGGER ingest_queue_unclaim AFTER UPDATE OF status ON ingest_queue
    WHEN NEW.status = 'pending'
     AND (NEW.claim_token IS NOT NULL OR NEW.lease_until IS NOT NULL OR NEW.started_at IS NOT NULL)
BEGIN
    UPDATE ingest_queue
       SET claim_token = NULL, lease_until = NULL, lease_ms = NULL, worker = NULL, holder = NULL, batch = NULL,
           started_at = NULL, cancelled = 0
     WHERE id = NEW.id;
END;
INSERT INTO membox_queue_meta VALUES ('schema_version', '5');
INSERT INTO membox_queue_meta VALUES ('worker_lease_is_here', 'yes');
