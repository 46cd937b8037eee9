-- Reads the worker lease. ?1 key
SELECT value FROM meta WHERE key = ?1
