-- Records the version of our schema. ?1 version
INSERT INTO membox_queue_meta (key, value) VALUES ('schema_version', ?1)
ON CONFLICT (key) DO UPDATE SET value = excluded.value
