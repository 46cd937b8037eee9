-- Finds a page of blocked items by ascending id.
-- ?1 queue ?2 project or NULL ?3 group or NULL ?4 after this id, or NULL ?5 how many
SELECT id FROM ingest_queue INDEXED BY ingest_queue_blocked
 WHERE queue = ?1 AND status = 'blocked' AND (?2 IS NULL OR project = ?2) AND (?3 IS NULL OR group_key = ?3)
   AND id > coalesce(?4, -9223372036854775808)
 ORDER BY id LIMIT ?5
