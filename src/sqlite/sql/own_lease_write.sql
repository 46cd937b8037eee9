-- Writes the worker lease to our own table, after own_lease_clear.sql. ?1 key ?2 record
INSERT INTO membox_queue_meta (key, value) VALUES (?1, ?2)
