-- Changes the counts of an item's group and orders it anew. ?1 id ?2 pending ?3 processing: by how much
INSERT INTO membox_queue_group_moved (queue, group_key, pending, processing)
SELECT queue, group_key, ?2, ?3 FROM ingest_queue WHERE id = ?1
