-- Our own settings, the schema version among them; the application's user_version is not ours to touch.
CREATE TABLE IF NOT EXISTS membox_queue_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID
