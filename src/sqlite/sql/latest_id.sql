-- Returns the largest id that was ever used. Only a file whose ids are never used twice has this table.
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'ingest_queue'
