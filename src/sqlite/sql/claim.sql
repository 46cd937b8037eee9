-- Takes the first claimable item of a queue and returns it; nobody else can take it meanwhile.
-- ?1 queue ?2 token ?3 lease_until ?4 lease_ms ?5 worker ?6 now as text ?7, ?8 bytes of filler
UPDATE ingest_queue
   SET status = 'processing', attempt = max(0, min(CAST(attempt AS INTEGER), 1 << 60)) + 1, claim_token = ?2, lease_until = ?3, lease_ms = ?4,
       worker = ?5, started_at = ?6, finished_at = NULL, filler = zeroblob(?7), filler2 = zeroblob(?8)
 WHERE id = (SELECT id FROM ingest_queue INDEXED BY ingest_queue_ready
              WHERE queue = ?1 AND status = 'pending' AND run_at IS NULL
              ORDER BY priority DESC, id LIMIT 1)
RETURNING id, queue, content, content_type, project, source_path, doc_date, status, retries, error, enqueued_at,
          started_at, finished_at, priority, run_at, attempt, claim_token, lease_until, worker, max_retries,
          headers, result
