-- What new and extended files share. Our settings, the schema version among them, have a table of their own: the
-- application's user_version is not ours to touch.
CREATE TABLE membox_queue_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Claimable rows, and only those, in the order of claims.
CREATE INDEX ingest_queue_ready ON ingest_queue (queue, priority DESC, id)
    WHERE status = 'pending' AND run_at IS NULL AND behind = 0;

-- Rows that wait for a time; the claim brings them into the order above when they are due.
CREATE INDEX ingest_queue_delayed ON ingest_queue (queue, run_at)
    WHERE status = 'pending' AND run_at IS NOT NULL;

-- Rows in somebody's hands, by the end of the lease.
CREATE INDEX ingest_queue_leases ON ingest_queue (queue, lease_until, lease_ms)
    WHERE status = 'processing';

-- Rows of a group that have entered it, those in front of it, and those in work.
CREATE INDEX ingest_queue_group ON ingest_queue (queue, group_key, id)
    WHERE group_key IS NOT NULL AND status = 'pending' AND (run_at IS NULL OR attempt > 0);
CREATE INDEX ingest_queue_front ON ingest_queue (queue, group_key, id)
    WHERE group_key IS NOT NULL AND status = 'pending' AND behind = 0;
CREATE INDEX ingest_queue_working ON ingest_queue (queue, group_key, id)
    WHERE group_key IS NOT NULL AND status = 'processing';

-- At most one unfinished item per key; and finished ones, whose keys may be reserved for a while. A key belongs to the
-- queue that an item was enqueued into, for its whole way.
CREATE UNIQUE INDEX ingest_queue_key ON ingest_queue (coalesce(home, queue), dedup_key)
    WHERE dedup_key IS NOT NULL AND status IN ('pending', 'processing', 'blocked');
CREATE INDEX ingest_queue_keys ON ingest_queue (coalesce(home, queue), dedup_key, id)
    WHERE dedup_key IS NOT NULL;
