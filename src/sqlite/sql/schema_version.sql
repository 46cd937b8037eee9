-- Reads the version of our schema in this file.
SELECT CAST(value AS TEXT) FROM membox_queue_meta WHERE key = 'schema_version'
