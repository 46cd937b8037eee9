-- Removes the worker lease from our own table. ?1 key
DELETE FROM membox_queue_meta WHERE key = ?1
