-- Reads a setting of the file. ?1 key
SELECT value FROM membox_queue_meta WHERE key = ?1
