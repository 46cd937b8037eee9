-- Removes done items of which nobody wrote when they ended, a bounded number. ?1 queue ?2 now ?3 how many
DELETE FROM ingest_queue
 WHERE id IN (SELECT id FROM ingest_queue INDEXED BY ingest_queue_finished
               WHERE queue = ?1 AND status = 'done' AND finished_at IS NULL AND (key_until IS NULL OR key_until <= ?2)
               LIMIT ?3)
