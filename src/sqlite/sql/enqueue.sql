-- Adds one item, pending or blocked.
-- ?1 queue ?2 content ?3 content_type ?4 project ?5 source_path ?6 doc_date ?7 priority ?8 run_at ?9 max_retries
-- ?10 headers ?11 now as text ?12 group ?13 key ?14 key_until ?15, ?16 fillers ?17 checksum ?18 parent
-- ?19 expires_at ?20 status
INSERT INTO main.ingest_queue
    (queue, content, content_type, project, source_path, doc_date, priority, run_at, max_retries, headers, enqueued_at,
     group_key, dedup_key, key_until, filler, filler2, checksum, parent, expires_at, status)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
