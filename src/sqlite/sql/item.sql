-- Reads one item and its checksum; the only list of an item's columns. ?1 id
SELECT id, queue, content, content_type, project, source_path, doc_date, status, retries, error, enqueued_at,
       started_at, finished_at, priority, run_at, attempt, lease_until, worker, max_retries, headers, result,
       group_key, dedup_key, checksum
  FROM ingest_queue WHERE id = ?1
