-- Finds up to ?3 schedules that are due. ?1 queue ?2 now ?3 how many
SELECT name, cron, every_ms, tz, next_at, last_at, last_id, content, content_type, project, source_path, doc_date,
       priority, max_retries, headers, group_key, dedup_key, checksum
  FROM membox_queue_schedules INDEXED BY membox_queue_schedules_next
 WHERE queue = ?1 AND next_at <= ?2 ORDER BY next_at LIMIT ?3
