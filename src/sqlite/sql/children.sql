-- Lists the items that an item has made. ?1 item ?2 after this id ?3 how many
SELECT id FROM ingest_queue INDEXED BY ingest_queue_children WHERE parent = ?1 AND id > ?2 ORDER BY id LIMIT ?3
