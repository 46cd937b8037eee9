-- Finds all items of one finished status. ?1 queue ?2 status
SELECT id FROM main.ingest_queue INDEXED BY ingest_queue_finished
 WHERE queue = ?1 AND (status = 'done' OR status = 'failed' OR status = 'cancelled') AND status = ?2
