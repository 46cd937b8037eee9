-- Asks the holder of an item to stop; its receipt is worth nothing from now on. ?1 id ?2 queue
UPDATE ingest_queue SET cancelled = 1 WHERE id = ?1 AND queue = ?2 AND status = 'processing' AND cancelled = 0
