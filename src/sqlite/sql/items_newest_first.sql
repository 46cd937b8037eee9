-- The same, backwards. ?1 queue ?2 status or NULL ?3 project or NULL ?4 before this id, or NULL ?5 how many ?6 group or NULL
SELECT id, queue, content, content_type, project, source_path, doc_date, status, retries, error, enqueued_at,
       started_at, finished_at, priority, run_at, attempt, claim_token, lease_until, worker, max_retries,
       headers, result, group_key, dedup_key,
       (SELECT fraction FROM membox_queue_progress WHERE item = id AND membox_queue_progress.attempt = ingest_queue.attempt),
       (SELECT note FROM membox_queue_progress WHERE item = id AND membox_queue_progress.attempt = ingest_queue.attempt)
  FROM ingest_queue
 WHERE queue = ?1 AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR project = ?3)
   AND (?6 IS NULL OR group_key = ?6) AND id < coalesce(?4, 9223372036854775807)
 ORDER BY id DESC LIMIT ?5
