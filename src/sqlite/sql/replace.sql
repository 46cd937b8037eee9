-- Gives a pending item new content and options in its old place.
-- ?1 id ?2 content ?3 content_type ?4 project ?5 source_path ?6 doc_date ?7 priority ?8 run_at ?9 max_retries
-- ?10 headers ?11 group ?12 key_until ?13 checksum ?14 expires_at
UPDATE main.ingest_queue
   SET content = ?2, content_type = ?3, project = ?4, source_path = ?5, doc_date = ?6, priority = ?7, run_at = ?8,
       max_retries = ?9, headers = ?10, group_key = ?11, key_until = ?12, checksum = ?13, expires_at = ?14
 WHERE id = ?1 AND status = 'pending'
