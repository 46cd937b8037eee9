-- Finds items with an unknown status. ?1 queue ?2 how many
SELECT id FROM ingest_queue
 WHERE queue = ?1 AND status NOT IN ('pending', 'processing', 'done', 'failed', 'blocked', 'cancelled')
 LIMIT ?2
