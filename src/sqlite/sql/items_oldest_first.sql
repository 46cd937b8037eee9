-- Finds a page of items by ascending id.
-- ?1 queue ?2 status or NULL ?3 project or NULL ?4 after this id, or NULL ?5 how many ?6 group or NULL
-- ?7 whether those that were enqueued there count, wherever they are now, rather than those that are there
SELECT id FROM ingest_queue
 WHERE CASE WHEN ?7 THEN coalesce(home, queue) ELSE queue END = ?1 AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR project = ?3)
   AND (?6 IS NULL OR group_key = ?6) AND id > coalesce(?4, -9223372036854775808)
 ORDER BY id LIMIT ?5
