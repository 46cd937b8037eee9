-- Finds all failed items. ?1 queue
SELECT id FROM ingest_queue INDEXED BY ingest_queue_finished WHERE queue = ?1 AND status = 'failed'
