-- What keeps the table true whoever writes to it: claims given back by other programs, groups, traces of removed rows.

-- A program that knows only membox's columns gives rows back without clearing the claim: the old holder's receipt
-- and lease must not live on.
CREATE TRIGGER ingest_queue_unclaim AFTER UPDATE OF status ON ingest_queue
    WHEN NEW.status = 'pending' AND NEW.claim_token IS NOT NULL
BEGIN
    UPDATE ingest_queue
       SET claim_token = NULL, lease_until = NULL, lease_ms = NULL, worker = NULL, holder = NULL, batch = NULL,
           cancelled = 0
     WHERE id = NEW.id;
END;

-- A group's rows stand in the order of their ids. Those that are pending and ready, or wait for a retry, have entered;
-- the first of them, as many as the group may run beside those in work, stand in front, all others behind. A group that
-- is held because of its rate has nothing in front.
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
            LIMIT max(0, CASE WHEN EXISTS (SELECT 1 FROM membox_queue_holds
                                            WHERE queue = NEW.queue AND group_key = NEW.group_key) THEN 0
                         ELSE coalesce((SELECT CAST(value AS INTEGER) FROM membox_queue_meta
                                         WHERE key = 'group_limit:' || NEW.queue), 1)
                              - (SELECT count(*) FROM ingest_queue
                                  WHERE queue = NEW.queue AND group_key = NEW.group_key AND status = 'processing')
                         END));
    UPDATE ingest_queue SET behind = 0
     WHERE behind = 1 AND id IN (
           SELECT id FROM ingest_queue
            WHERE queue = NEW.queue AND group_key = NEW.group_key AND status = 'pending'
              AND (run_at IS NULL OR attempt > 0)
            ORDER BY id
            LIMIT max(0, CASE WHEN EXISTS (SELECT 1 FROM membox_queue_holds
                                            WHERE queue = NEW.queue AND group_key = NEW.group_key) THEN 0
                         ELSE coalesce((SELECT CAST(value AS INTEGER) FROM membox_queue_meta
                                         WHERE key = 'group_limit:' || NEW.queue), 1)
                              - (SELECT count(*) FROM ingest_queue
                                  WHERE queue = NEW.queue AND group_key = NEW.group_key AND status = 'processing')
                         END));
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

CREATE TRIGGER ingest_queue_history_delete AFTER DELETE ON ingest_queue
    WHEN OLD.attempt > 0
BEGIN
    DELETE FROM membox_queue_history WHERE item = OLD.id;
    DELETE FROM membox_queue_progress WHERE item = OLD.id;
END;
