-- The newest item with this key. ?1 key ?2 queue
SELECT id, queue, content, content_type, project, source_path, doc_date, status, retries, error, enqueued_at,
       started_at, finished_at, priority, run_at, attempt, claim_token, lease_until, worker, max_retries,
       headers, result, group_key, dedup_key,
       (SELECT fraction FROM membox_queue_progress WHERE item = id AND membox_queue_progress.attempt = ingest_queue.attempt),
       (SELECT note FROM membox_queue_progress WHERE item = id AND membox_queue_progress.attempt = ingest_queue.attempt)
  FROM ingest_queue INDEXED BY ingest_queue_keys
 WHERE queue = ?2 AND dedup_key = ?1 ORDER BY id DESC LIMIT 1
