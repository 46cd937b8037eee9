-- Lists who holds the items in progress. ?1 queue ?2 how many
SELECT id, holder, worker, started_at
  FROM ingest_queue INDEXED BY ingest_queue_leases
 WHERE queue = ?1 AND status = 'processing'
 LIMIT ?2
