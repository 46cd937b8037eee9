-- Returns the largest id in the table.
SELECT coalesce(max(id), 0) FROM ingest_queue
