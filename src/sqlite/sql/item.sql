-- One item, its checksum, and the progress of its attempt; the only list of an item's columns. ?1 id
SELECT id, queue, content, content_type, project, source_path, doc_date, status, retries, error, enqueued_at,
       started_at, finished_at, priority, run_at, ingest_queue.attempt, lease_until, worker, max_retries, headers, result,
       group_key, dedup_key, checksum, fraction, note, home, stage, parent, expires_at
  FROM ingest_queue LEFT JOIN membox_queue_progress ON item = id AND membox_queue_progress.attempt = ingest_queue.attempt
 WHERE id = ?1
