-- What a file of version 1 has in another shape.
DROP INDEX IF EXISTS ingest_queue_failed;
