-- What files of version 4 have in another shape.
DROP TRIGGER IF EXISTS ingest_queue_unclaim;
