-- Records which item has made another. ?1 id ?2 parent
UPDATE main.ingest_queue SET parent = ?2 WHERE id = ?1
