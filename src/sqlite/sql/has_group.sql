-- Whether an item has a group. ?1 id
SELECT group_key IS NOT NULL FROM ingest_queue WHERE id = ?1
