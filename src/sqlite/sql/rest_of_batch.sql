-- The claims of a batch that come after one that did not end well. ?1 queue ?2 group ?3 batch ?4 id
SELECT id, attempt, claim_token, retries, max_retries, worker, started_at, cancelled, group_key, batch
  FROM ingest_queue INDEXED BY ingest_queue_working
 WHERE queue = ?1 AND group_key = ?2 AND status = 'processing' AND batch = ?3 AND id > ?4
 ORDER BY id
