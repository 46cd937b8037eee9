-- Finds done items without an end time, starting after item ?2, and whether their key is still reserved.
-- ?1 queue ?2 id, or 0 ?3 now ?4 how many
SELECT id, coalesce(key_until > ?3, 0) FROM ingest_queue INDEXED BY ingest_queue_finished
 WHERE queue = ?1 AND status = 'done' AND finished_at IS NULL AND id > ?2 ORDER BY id LIMIT ?4
