-- Writes the worker lease; cleared before, because an application's meta table need not have a unique key. ?1 key ?2 record
INSERT INTO membox_queue_meta (key, value) VALUES (?1, ?2)
