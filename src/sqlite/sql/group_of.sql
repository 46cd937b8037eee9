-- The group of an item. ?1 id
SELECT group_key FROM ingest_queue WHERE id = ?1
