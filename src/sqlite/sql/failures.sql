-- The latest failures, newest first. ?1 queue ?2 how many
SELECT id, queue, content, content_type, project, source_path, doc_date, status, retries, error, enqueued_at,
       started_at, finished_at, priority, run_at, attempt, claim_token, lease_until, worker, max_retries,
       headers, result, group_key, dedup_key,
       (SELECT fraction FROM membox_queue_progress WHERE item = id AND membox_queue_progress.attempt = ingest_queue.attempt),
       (SELECT note FROM membox_queue_progress WHERE item = id AND membox_queue_progress.attempt = ingest_queue.attempt)
  FROM ingest_queue INDEXED BY ingest_queue_finished
 WHERE queue = ?1 AND status = 'failed'
 ORDER BY finished_at DESC, id DESC LIMIT ?2
