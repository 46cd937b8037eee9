-- Enqueues a copy of an item: the same content and options, without its history and its key.
-- An item whose content was dropped cannot be copied. ?1 id ?2 queue ?3 now as text ?4 run_at or NULL
INSERT INTO ingest_queue
    (queue, content, content_type, project, source_path, doc_date, priority, max_retries, headers, group_key, checksum,
     enqueued_at, run_at)
SELECT queue, content, content_type, project, source_path, doc_date, priority, max_retries, headers, group_key, checksum,
       ?3, ?4
  FROM ingest_queue WHERE id = ?1 AND (queue = ?2 OR home = ?2) AND content_type <> 'dropped'
