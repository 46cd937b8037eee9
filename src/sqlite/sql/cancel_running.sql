-- Asks the worker of an item in progress to stop; the item becomes `cancelled` when it reports. ?1 id ?2 queue
UPDATE main.ingest_queue SET cancelled = 1
 WHERE id = ?1 AND (queue = ?2 OR home = ?2) AND status = 'processing' AND cancelled = 0
