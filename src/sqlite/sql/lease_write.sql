-- Writes the worker lease, after lease_clear.sql: the application's `meta` may lack a unique key. ?1 key ?2 record
INSERT INTO meta (key, value) VALUES (?1, ?2)
