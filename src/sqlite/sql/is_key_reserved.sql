-- Whether the key of an item is reserved beyond its end. ?1 id ?2 now
SELECT 1 FROM ingest_queue WHERE id = ?1 AND key_until > ?2
