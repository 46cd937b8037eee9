-- Lists the schedules of a queue by name. ?1 queue
SELECT name, cron, every_ms, tz, next_at, last_at, last_id, content, content_type, project, source_path, doc_date,
       priority, max_retries, headers, group_key, dedup_key, checksum
  FROM membox_queue_schedules WHERE queue = ?1 ORDER BY name
