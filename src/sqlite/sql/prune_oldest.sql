-- Removes the done items that ended first, a bounded number, but for those whose key is still reserved.
-- ?1 queue ?2 now ?3 how many
DELETE FROM ingest_queue
 WHERE id IN (SELECT id FROM (SELECT id, key_until FROM ingest_queue INDEXED BY ingest_queue_finished
                               WHERE queue = ?1 AND status = 'done' ORDER BY finished_at LIMIT ?3)
               WHERE key_until IS NULL OR key_until <= ?2)
