-- The item that was just claimed, and its checksum. ?1 id
SELECT id, queue, content, content_type, project, source_path, doc_date, status, retries, error, enqueued_at,
       started_at, finished_at, priority, run_at, attempt, claim_token, lease_until, worker, max_retries,
       headers, result, group_key, dedup_key, NULL, NULL, checksum
  FROM ingest_queue WHERE id = ?1
