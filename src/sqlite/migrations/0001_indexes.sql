-- What new and extended files share. Our settings, the schema version among them, have a table of their own: the
-- application's user_version is not ours to touch.
CREATE TABLE membox_queue_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

-- Claimable rows, and only those, in the order of claims.
CREATE INDEX ingest_queue_ready ON ingest_queue (queue, priority DESC, id)
    WHERE status = 'pending' AND run_at IS NULL;

-- Rows that wait for a time; the claim brings them into the order above when they are due.
CREATE INDEX ingest_queue_delayed ON ingest_queue (queue, run_at)
    WHERE status = 'pending' AND run_at IS NOT NULL;

-- Rows in somebody's hands, by the end of the lease.
CREATE INDEX ingest_queue_leases ON ingest_queue (queue, lease_until, lease_ms)
    WHERE status = 'processing';

CREATE INDEX ingest_queue_failed ON ingest_queue (queue, finished_at)
    WHERE status = 'failed';

-- A program that knows only membox's columns gives rows back without clearing the claim: the old holder's receipt
-- and lease must not live on.
CREATE TRIGGER ingest_queue_unclaim AFTER UPDATE OF status ON ingest_queue
    WHEN NEW.status = 'pending' AND NEW.claim_token IS NOT NULL
BEGIN
    UPDATE ingest_queue
       SET claim_token = NULL, lease_until = NULL, lease_ms = NULL, worker = NULL
     WHERE id = NEW.id;
END;
