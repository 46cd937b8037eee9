-- Finds the items in progress, the longest-running first. ?1 queue ?2 how many
SELECT id FROM ingest_queue INDEXED BY ingest_queue_leases
 WHERE queue = ?1 AND status = 'processing'
 ORDER BY started_at, id LIMIT ?2
