-- The items that are being worked on, the longest first. ?1 queue ?2 how many
SELECT id, queue, content, content_type, project, source_path, doc_date, status, retries, error, enqueued_at,
       started_at, finished_at, priority, run_at, attempt, claim_token, lease_until, worker, max_retries,
       headers, result, group_key, dedup_key,
       (SELECT fraction FROM membox_queue_progress WHERE item = id AND membox_queue_progress.attempt = ingest_queue.attempt),
       (SELECT note FROM membox_queue_progress WHERE item = id AND membox_queue_progress.attempt = ingest_queue.attempt)
  FROM ingest_queue INDEXED BY ingest_queue_leases
 WHERE queue = ?1 AND status = 'processing'
 ORDER BY started_at, id LIMIT ?2
