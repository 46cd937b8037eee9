-- Finds the claims of a batch after one that was not done. ?1 queue ?2 batch ?3 id
SELECT id, attempt, claim_token, retries, max_retries, worker, started_at, cancelled, batch, holder,
       lease_ms, group_key IS NOT NULL
  FROM main.ingest_queue INDEXED BY ingest_queue_working
 WHERE queue = ?1 AND group_key = (SELECT group_key FROM main.ingest_queue WHERE id = ?3)
   AND status = 'processing' AND batch = ?2 AND id > ?3
 ORDER BY id
