-- What a table made by membox lacks: one statement a column, each run only where the column is missing.
ALTER TABLE ingest_queue ADD COLUMN queue TEXT NOT NULL DEFAULT 'ingest';
ALTER TABLE ingest_queue ADD COLUMN content_type TEXT NOT NULL DEFAULT 'text';
ALTER TABLE ingest_queue ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ingest_queue ADD COLUMN run_at INTEGER;
ALTER TABLE ingest_queue ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ingest_queue ADD COLUMN claim_token INTEGER;
ALTER TABLE ingest_queue ADD COLUMN lease_until INTEGER;
ALTER TABLE ingest_queue ADD COLUMN lease_ms INTEGER;
ALTER TABLE ingest_queue ADD COLUMN worker TEXT;
ALTER TABLE ingest_queue ADD COLUMN max_retries INTEGER;
ALTER TABLE ingest_queue ADD COLUMN gave_up INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ingest_queue ADD COLUMN group_key TEXT;
ALTER TABLE ingest_queue ADD COLUMN dedup_key TEXT;
ALTER TABLE ingest_queue ADD COLUMN headers TEXT;
ALTER TABLE ingest_queue ADD COLUMN result TEXT;
ALTER TABLE ingest_queue ADD COLUMN filler BLOB NOT NULL DEFAULT x'';
ALTER TABLE ingest_queue ADD COLUMN filler2 BLOB NOT NULL DEFAULT x'';
