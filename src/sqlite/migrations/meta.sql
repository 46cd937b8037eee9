-- Membox's table, in which its programs look for the worker lease. Only the drop-in for membox creates it.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
