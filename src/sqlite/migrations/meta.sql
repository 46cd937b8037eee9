-- Membox's table, in which the worker lease lives; an application may have one of its own.
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
