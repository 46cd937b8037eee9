-- Stores a setting of the file. ?1 key ?2 value
INSERT INTO membox_queue_meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value
