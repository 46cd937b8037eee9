-- Writes the worker lease, after the old one was cleared. ?1 key ?2 record
INSERT INTO membox_queue_meta (key, value) VALUES (?1, ?2)
