-- Finds the first item of the first group that has nothing in progress. ?1 queue
SELECT id FROM ingest_queue AS head INDEXED BY ingest_queue_ready
 WHERE queue = ?1 AND status = 'pending' AND run_at IS NULL AND behind = 0 AND group_key IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM ingest_queue INDEXED BY ingest_queue_working
                    WHERE queue = ?1 AND group_key = head.group_key AND status = 'processing')
 ORDER BY priority DESC, id LIMIT 1
