-- Removes the content of a done item. ?1 id ?2 queue
UPDATE main.ingest_queue SET content = '', content_type = 'dropped', checksum = NULL, filler = x'', filler2 = x''
 WHERE id = ?1 AND queue = ?2 AND status = 'done'
