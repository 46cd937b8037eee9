-- Finds the latest failures, newest first. ?1 queue ?2 how many
SELECT id FROM ingest_queue INDEXED BY ingest_queue_finished
 WHERE queue = ?1 AND status = 'failed'
 ORDER BY finished_at DESC, id DESC LIMIT ?2
