-- Finds items of one finished status that ended before ?3, in that order, and whether their key is still reserved.
-- Starts after item ?4. Many may end in one millisecond, so those with its end time and a larger id come first.
-- ?1 queue ?2 status ?3 before ?4 id, or 0 ?5 now ?6 how many
SELECT id, coalesce(key_until > ?5, 0), finished_at FROM ingest_queue INDEXED BY ingest_queue_finished
 WHERE queue = ?1 AND (status = 'done' OR status = 'failed' OR status = 'cancelled') AND status = ?2
   AND finished_at = (SELECT finished_at FROM ingest_queue WHERE id = ?4) AND id > ?4 AND finished_at < ?3
 UNION ALL
SELECT id, coalesce(key_until > ?5, 0), finished_at FROM ingest_queue INDEXED BY ingest_queue_finished
 WHERE queue = ?1 AND (status = 'done' OR status = 'failed' OR status = 'cancelled') AND status = ?2
   AND finished_at > coalesce((SELECT finished_at FROM ingest_queue WHERE id = ?4), -9e999) AND finished_at < ?3
 ORDER BY finished_at, id LIMIT ?6
