-- Enqueues a copy of an item: same content and details, nothing of its life, and not its key. One whose content was
-- dropped has nothing to copy. ?1 id ?2 queue ?3 now as text
INSERT INTO ingest_queue
    (queue, content, content_type, project, source_path, doc_date, priority, max_retries, headers, group_key, checksum,
     enqueued_at)
SELECT queue, content, content_type, project, source_path, doc_date, priority, max_retries, headers, group_key, checksum,
       ?3
  FROM ingest_queue WHERE id = ?1 AND queue = ?2 AND content_type <> 'dropped'
