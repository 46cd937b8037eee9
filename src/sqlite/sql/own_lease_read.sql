-- Reads the worker lease from our own table. ?1 key
SELECT value FROM membox_queue_meta WHERE key = ?1
