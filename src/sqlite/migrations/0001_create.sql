-- The queue of a new file. AUTOINCREMENT: an id is never used twice. The content stands last, so that reading and
-- writing the short columns does not walk through a long document. The fillers give a row room for what a claim and
-- its end write: SQLite rewrites only the changed pages of a row whose length stays the same, not the whole document.
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
    max_retries  INTEGER,
    gave_up      INTEGER NOT NULL DEFAULT 0,
    group_key    TEXT,
    dedup_key    TEXT,
    headers      TEXT,
    result       TEXT,
    filler       BLOB NOT NULL DEFAULT (zeroblob(57)),
    filler2      BLOB NOT NULL DEFAULT (zeroblob(34)),
    content      TEXT NOT NULL
);
