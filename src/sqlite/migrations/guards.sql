-- What keeps the table true whoever writes to it: claims given back by other programs, groups, traces of removed rows.

-- A group's rows stand in the order of their ids. Those that are pending and ready, or wait for a retry, have entered;
-- the first of them, as many as the group may run beside those in work, stand in front, all others behind. A group that
-- is held because of its rate has nothing in front. The last two columns say how its counts change.
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

-- A copy of a row that stood behind its group may come without the group.
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

-- What a row leaves behind that is no more.
CREATE VIEW membox_queue_gone (id, queue, status, group_key, attempt) AS SELECT NULL, NULL, NULL, NULL, NULL;

CREATE TRIGGER membox_queue_gone INSTEAD OF INSERT ON membox_queue_gone
BEGIN
    INSERT INTO membox_queue_counted VALUES (NEW.queue, NEW.status, NULL);
    INSERT INTO membox_queue_group_moved
    SELECT NEW.queue, NEW.group_key, -(NEW.status = 'pending'), -(NEW.status = 'processing')
     WHERE NEW.group_key IS NOT NULL;
    DELETE FROM membox_queue_history WHERE item = NEW.id AND NEW.attempt > 0;
    DELETE FROM membox_queue_progress WHERE item = NEW.id AND NEW.attempt > 0;
    DELETE FROM membox_queue_steps WHERE item = NEW.id AND NEW.attempt > 0;
    DELETE FROM membox_queue_after WHERE item = NEW.id;
    INSERT INTO membox_queue_awaited
    SELECT NEW.id WHERE EXISTS (SELECT 1 FROM membox_queue_after WHERE needs = NEW.id AND state = 0)
       AND NOT EXISTS (SELECT 1 FROM membox_queue_awaited WHERE item = NEW.id);
END;

CREATE TRIGGER ingest_queue_gone AFTER DELETE ON ingest_queue
BEGIN
    INSERT INTO membox_queue_gone VALUES (OLD.id, OLD.queue, OLD.status, OLD.group_key, OLD.attempt);
    DELETE FROM membox_queue_replaced WHERE id = OLD.id;
END;

-- INSERT OR REPLACE removes what is in its way without a word to the triggers of DELETE. What could be in its way is
-- noted before, and if it is gone afterwards, it was; an insert that was refused or ignored leaves a note of a row that
-- still is.
CREATE TRIGGER ingest_queue_replace BEFORE INSERT ON ingest_queue
    WHEN EXISTS (SELECT 1 FROM ingest_queue WHERE id = NEW.id)
      OR (NEW.dedup_key IS NOT NULL
          AND EXISTS (SELECT 1 FROM ingest_queue
                       WHERE coalesce(home, queue) = coalesce(NEW.home, NEW.queue) AND dedup_key = NEW.dedup_key
                         AND status IN ('pending', 'processing', 'blocked')))
BEGIN
    DELETE FROM membox_queue_replaced;
    INSERT INTO membox_queue_replaced
    SELECT id, queue, status, group_key, attempt FROM ingest_queue WHERE id = NEW.id
    UNION
    SELECT id, queue, status, group_key, attempt FROM ingest_queue
     WHERE coalesce(home, queue) = coalesce(NEW.home, NEW.queue) AND dedup_key = NEW.dedup_key
       AND status IN ('pending', 'processing', 'blocked');
END;

CREATE TRIGGER ingest_queue_replaced AFTER INSERT ON ingest_queue
    WHEN EXISTS (SELECT 1 FROM membox_queue_replaced)
BEGIN
    INSERT INTO membox_queue_gone
    SELECT id, queue, status, group_key, attempt FROM membox_queue_replaced AS former
     WHERE id = NEW.id OR NOT EXISTS (SELECT 1 FROM ingest_queue WHERE ingest_queue.id = former.id);
    DELETE FROM membox_queue_replaced;
END;

-- The same for UPDATE OR REPLACE. A row that has ended and is brought back takes up its key again.
CREATE TRIGGER ingest_queue_replace_by_update BEFORE UPDATE OF id, queue, home, dedup_key, status ON ingest_queue
    WHEN NEW.id <> OLD.id
      OR (NEW.dedup_key IS NOT NULL AND NEW.status IN ('pending', 'processing', 'blocked')
          AND (NEW.dedup_key IS NOT OLD.dedup_key OR coalesce(NEW.home, NEW.queue) <> coalesce(OLD.home, OLD.queue)
               OR OLD.status NOT IN ('pending', 'processing', 'blocked')))
BEGIN
    DELETE FROM membox_queue_replaced;
    INSERT INTO membox_queue_replaced
    SELECT id, queue, status, group_key, attempt FROM ingest_queue WHERE id = NEW.id AND id <> OLD.id
    UNION
    SELECT id, queue, status, group_key, attempt FROM ingest_queue
     WHERE coalesce(home, queue) = coalesce(NEW.home, NEW.queue) AND dedup_key = NEW.dedup_key
       AND status IN ('pending', 'processing', 'blocked')
       AND id <> OLD.id;
END;

CREATE TRIGGER ingest_queue_replaced_by_update AFTER UPDATE OF id, queue, home, dedup_key, status ON ingest_queue
    WHEN EXISTS (SELECT 1 FROM membox_queue_replaced)
BEGIN
    INSERT INTO membox_queue_gone
    SELECT id, queue, status, group_key, attempt FROM membox_queue_replaced AS former
     WHERE (id = NEW.id AND NEW.id <> OLD.id)
        OR NOT EXISTS (SELECT 1 FROM ingest_queue WHERE ingest_queue.id = former.id);
    DELETE FROM membox_queue_replaced;
END;
