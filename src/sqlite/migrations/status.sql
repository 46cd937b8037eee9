-- What another program writes into the column that decides about everything.

-- A row with a status that nobody knows would be seen by no claim and by no count.
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

-- A program that knows only membox's columns gives rows back without clearing the claim: the old holder's receipt and
-- lease must not live on, and the next claim must not be judged by the times of the last one.
CREATE TRIGGER ingest_queue_unclaim AFTER UPDATE OF status ON ingest_queue
    WHEN NEW.status = 'pending'
     AND (NEW.claim_token IS NOT NULL OR NEW.lease_until IS NOT NULL OR NEW.started_at IS NOT NULL)
BEGIN
    UPDATE ingest_queue
       SET claim_token = NULL, lease_until = NULL, lease_ms = NULL, worker = NULL, holder = NULL, batch = NULL,
           started_at = NULL, cancelled = 0
     WHERE id = NEW.id;
END;
