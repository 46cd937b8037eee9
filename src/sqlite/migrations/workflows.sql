-- Stages, dependencies, steps and deadlines. In the table of items: `home` is the queue an item was enqueued into, once it
-- has moved to another; `parent` the item that made it; `because` the item whose end cancelled it.
CREATE INDEX ingest_queue_home ON ingest_queue (home, id) WHERE home IS NOT NULL;
CREATE INDEX ingest_queue_children ON ingest_queue (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX ingest_queue_blocked ON ingest_queue (queue, id) WHERE status = 'blocked';
-- What began in a queue, is elsewhere now and has not ended.
CREATE INDEX ingest_queue_away ON ingest_queue (home)
    WHERE home IS NOT NULL AND status IN ('pending', 'processing', 'blocked');
-- Deadlines of all queues: no worker may ever claim from the queue that an item waits in for an answer. An item whose
-- worker was told is not looked at again.
CREATE INDEX ingest_queue_expiring ON ingest_queue (expires_at)
    WHERE expires_at IS NOT NULL AND cancelled = 0 AND status IN ('pending', 'processing', 'blocked');

-- Which items an item waits for, in the order given. state: 0 open, 1 met, 2 broken, which has cancelled the item.
CREATE TABLE membox_queue_after (
    item      INTEGER NOT NULL,
    place     INTEGER NOT NULL,
    needs     INTEGER NOT NULL,
    if_failed TEXT NOT NULL DEFAULT 'cancel',
    state     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (item, place)
) WITHOUT ROWID;
CREATE INDEX membox_queue_after_needs ON membox_queue_after (needs, state, item, if_failed);
CREATE INDEX membox_queue_after_open ON membox_queue_after (item, needs) WHERE state <> 1;

-- Items that others wait for and that have ended, come back or gone: their dependents are still to be updated.
CREATE TABLE membox_queue_awaited (item INTEGER PRIMARY KEY);

CREATE TRIGGER ingest_queue_awaited AFTER UPDATE OF status ON ingest_queue
    WHEN OLD.status <> NEW.status
     AND (NEW.status IN ('done', 'failed', 'cancelled') OR OLD.status IN ('failed', 'cancelled'))
     AND EXISTS (SELECT 1 FROM membox_queue_after WHERE needs = NEW.id)
BEGIN
    INSERT INTO membox_queue_awaited
    SELECT NEW.id WHERE NOT EXISTS (SELECT 1 FROM membox_queue_awaited WHERE item = NEW.id);
END;

-- What a handler has done once and need not do again.
CREATE TABLE membox_queue_steps (
    item   INTEGER NOT NULL,
    stage  INTEGER NOT NULL,
    name   TEXT NOT NULL,
    kind   TEXT NOT NULL,
    result TEXT NOT NULL,
    at     TEXT NOT NULL,
    PRIMARY KEY (item, stage, name)
) WITHOUT ROWID;

-- One bounded step: what the end, the return or the removal of an item means for the first so many that wait for it. It
-- goes by what is, not by what happened, so it can be repeated.
CREATE VIEW membox_queue_look (item, most, now) AS SELECT NULL, NULL, NULL;
CREATE TRIGGER membox_queue_look INSTEAD OF INSERT ON membox_queue_look
BEGIN
    -- It is no longer failed: those it cancelled wait again, unless their key is in use. Of several with one key, the
    -- latest.
    UPDATE ingest_queue SET status = 'blocked', because = NULL, error = NULL, finished_at = NULL
     WHERE +status = 'cancelled' AND because IS NOT NULL
       AND coalesce((SELECT status FROM ingest_queue WHERE id = NEW.item), 'gone') NOT IN ('failed', 'cancelled', 'gone')
       AND id IN (SELECT item FROM membox_queue_after WHERE needs = NEW.item AND state = 2 ORDER BY item LIMIT NEW.most)
       AND NOT EXISTS (SELECT 1 FROM membox_queue_after AS other INDEXED BY membox_queue_after_open
                        WHERE other.item = ingest_queue.id AND other.state <> 1 AND other.state = 2
                          AND other.needs <> NEW.item)
       AND (dedup_key IS NULL
            OR NOT (EXISTS (SELECT 1 FROM ingest_queue AS twin
                             WHERE coalesce(twin.home, twin.queue) = coalesce(ingest_queue.home, ingest_queue.queue)
                               AND twin.dedup_key = ingest_queue.dedup_key
                               AND twin.status IN ('pending', 'processing', 'blocked'))
                 OR EXISTS (SELECT 1 FROM ingest_queue AS twin
                             WHERE coalesce(twin.home, twin.queue) = coalesce(ingest_queue.home, ingest_queue.queue)
                               AND twin.dedup_key = ingest_queue.dedup_key AND twin.id > ingest_queue.id
                               AND twin.status = 'cancelled' AND twin.because IS NOT NULL)));
    UPDATE membox_queue_after SET state = 0
     WHERE needs = NEW.item AND state = 2
       AND coalesce((SELECT status FROM ingest_queue WHERE id = NEW.item), 'gone') NOT IN ('failed', 'cancelled', 'gone')
       AND item IN (SELECT item FROM membox_queue_after WHERE needs = NEW.item AND state = 2
                     ORDER BY item LIMIT NEW.most);
    -- It is done, or ended otherwise and they run anyway: those that wait for nothing else may run.
    UPDATE ingest_queue SET status = 'pending'
     WHERE +status = 'blocked'
       AND id IN (SELECT item FROM membox_queue_after
                   WHERE needs = NEW.item AND state = 0
                     AND (if_failed = 'run' OR (SELECT status FROM ingest_queue WHERE id = NEW.item) = 'done')
                     AND coalesce((SELECT status FROM ingest_queue WHERE id = NEW.item), 'gone')
                         IN ('done', 'failed', 'cancelled', 'gone')
                   ORDER BY item LIMIT NEW.most)
       AND NOT EXISTS (SELECT 1 FROM membox_queue_after AS other INDEXED BY membox_queue_after_open
                        WHERE other.item = ingest_queue.id AND other.state <> 1 AND other.needs <> NEW.item);
    UPDATE membox_queue_after SET state = 1
     WHERE needs = NEW.item AND state = 0
       AND item IN (SELECT item FROM membox_queue_after
                     WHERE needs = NEW.item AND state = 0
                       AND (if_failed = 'run' OR (SELECT status FROM ingest_queue WHERE id = NEW.item) = 'done')
                       AND coalesce((SELECT status FROM ingest_queue WHERE id = NEW.item), 'gone')
                           IN ('done', 'failed', 'cancelled', 'gone')
                     ORDER BY item LIMIT NEW.most);
    -- It failed, was cancelled or removed: those that cannot do without it are cancelled.
    UPDATE ingest_queue
       SET status = 'cancelled', because = NEW.item, finished_at = NEW.now, run_at = NULL,
           error = 'it waits for item ' || NEW.item || ', which '
                   || CASE (SELECT status FROM ingest_queue WHERE id = NEW.item)
                      WHEN 'failed' THEN 'failed' WHEN 'cancelled' THEN 'was cancelled' ELSE 'was removed' END
     WHERE +status = 'blocked'
       AND coalesce((SELECT status FROM ingest_queue WHERE id = NEW.item), 'gone') IN ('failed', 'cancelled', 'gone')
       AND id IN (SELECT item FROM membox_queue_after
                   WHERE needs = NEW.item AND state = 0 AND if_failed = 'cancel'
                   ORDER BY item LIMIT NEW.most);
    UPDATE membox_queue_after SET state = 2
     WHERE needs = NEW.item AND state = 0
       AND coalesce((SELECT status FROM ingest_queue WHERE id = NEW.item), 'gone') IN ('failed', 'cancelled', 'gone')
       AND item IN (SELECT item FROM membox_queue_after
                     WHERE needs = NEW.item AND state = 0 AND if_failed = 'cancel'
                     ORDER BY item LIMIT NEW.most);
    -- It has come back: those that would run anyway, and have not begun, wait for it again.
    UPDATE membox_queue_after SET state = 0
     WHERE needs = (SELECT id FROM ingest_queue WHERE id = NEW.item AND status IN ('pending', 'processing', 'blocked'))
       AND state = 1 AND if_failed = 'run'
       AND EXISTS (SELECT 1 FROM ingest_queue WHERE id = membox_queue_after.item AND status = 'blocked');
    DELETE FROM membox_queue_awaited
     WHERE item = NEW.item
       AND NOT EXISTS (
           SELECT 1 FROM membox_queue_after
            WHERE needs = NEW.item AND state IN (0, 2)
              AND CASE coalesce((SELECT status FROM ingest_queue WHERE id = NEW.item), 'gone')
                  WHEN 'done' THEN 1
                  WHEN 'failed' THEN state = 0
                  WHEN 'cancelled' THEN state = 0
                  WHEN 'gone' THEN state = 0
                  ELSE state = 2 END);
END;
