-- Takes the item with this id, which one of the next_*.sql has just found, and returns it.
-- ?1 id ?2 token ?3 lease_until ?4 lease_ms ?5 worker ?6 now as text ?7 batch or NULL ?8, ?9 bytes of filler
UPDATE ingest_queue
   SET status = 'processing', attempt = max(0, min(CAST(attempt AS INTEGER), 1 << 60)) + 1, claim_token = ?2,
       lease_until = ?3, lease_ms = ?4, worker = ?5, started_at = ?6, finished_at = NULL, batch = ?7, cancelled = 0,
       filler = zeroblob(?8), filler2 = zeroblob(?9)
 WHERE id = ?1 AND status = 'pending'
RETURNING id, queue, content, content_type, project, source_path, doc_date, status, retries, error, enqueued_at,
          started_at, finished_at, priority, run_at, attempt, claim_token, lease_until, worker, max_retries,
          headers, result, group_key, dedup_key
