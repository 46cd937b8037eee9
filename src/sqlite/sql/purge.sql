-- Removes items of one finished status, a bounded number at a time. ?1 queue ?2 status ?3 how many
DELETE FROM ingest_queue
 WHERE id IN (SELECT id FROM ingest_queue INDEXED BY ingest_queue_finished
               WHERE queue = ?1 AND (status = 'done' OR status = 'failed' OR status = 'cancelled') AND status = ?2
               LIMIT ?3)
