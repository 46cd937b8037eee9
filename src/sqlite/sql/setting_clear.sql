-- Removes a setting of the file. ?1 key
DELETE FROM membox_queue_meta WHERE key = ?1
