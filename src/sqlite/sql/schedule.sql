-- Adds a schedule, or replaces the one of that name.
-- ?1 queue ?2 name ?3 cron ?4 every_ms ?5 tz ?6 next_at ?7 content ?8 content_type ?9 project ?10 source_path
-- ?11 doc_date ?12 priority ?13 max_retries ?14 headers ?15 group ?16 key ?17 checksum
INSERT INTO main.membox_queue_schedules
    (queue, name, cron, every_ms, tz, next_at, content, content_type, project, source_path, doc_date, priority,
     max_retries, headers, group_key, dedup_key, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
ON CONFLICT (queue, name) DO UPDATE
   SET cron = ?3, every_ms = ?4, tz = ?5, next_at = ?6, content = ?7, content_type = ?8, project = ?9, source_path = ?10,
       doc_date = ?11, priority = ?12, max_retries = ?13, headers = ?14, group_key = ?15, dedup_key = ?16,
       checksum = ?17
