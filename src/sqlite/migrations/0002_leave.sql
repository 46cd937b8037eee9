-- What a file of version 1 has in another shape.
DROP INDEX ingest_queue_failed;
