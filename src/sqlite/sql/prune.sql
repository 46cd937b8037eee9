-- Removes items of one finished status that ended before ?3 and whose key is not reserved any more, a bounded number.
-- ?1 queue ?2 status ?3 finished before ?4 now ?5 how many
DELETE FROM ingest_queue
 WHERE id IN (SELECT id FROM ingest_queue INDEXED BY ingest_queue_finished
               WHERE queue = ?1 AND (status = 'done' OR status = 'failed' OR status = 'cancelled') AND status = ?2
                 AND finished_at < ?3 AND (key_until IS NULL OR key_until <= ?4)
               ORDER BY finished_at LIMIT ?5)
