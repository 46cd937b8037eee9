-- Finds the groups of the items that bring_in_due.sql is about to make claimable. ?1 queue ?2 now ?3 how many
SELECT DISTINCT group_key FROM ingest_queue
 WHERE (id IN (SELECT id FROM ingest_queue INDEXED BY ingest_queue_delayed
                WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND run_at <= ?2
                ORDER BY run_at LIMIT ?3)
     OR id IN (SELECT id FROM ingest_queue INDEXED BY ingest_queue_delayed
                WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND run_at >= '' LIMIT ?3))
   AND group_key IS NOT NULL
