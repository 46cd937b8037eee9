-- Removes the worker lease. ?1 key
DELETE FROM meta WHERE key = ?1
