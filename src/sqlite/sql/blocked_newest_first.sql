-- Finds a page of blocked items by descending id.
-- ?1 queue ?2 project or NULL ?3 group or NULL ?4 before this id, or NULL ?5 how many
SELECT id FROM ingest_queue INDEXED BY ingest_queue_blocked
 WHERE queue = ?1 AND status = 'blocked' AND (?2 IS NULL OR project = ?2) AND (?3 IS NULL OR group_key = ?3)
   AND id < coalesce(?4, 9223372036854775807)
 ORDER BY id DESC LIMIT ?5
