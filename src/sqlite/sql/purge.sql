-- Removes items of one status, a bounded number at a time. ?1 queue ?2 status ?3 how many
DELETE FROM ingest_queue
 WHERE id IN (SELECT id FROM ingest_queue WHERE queue = ?1 AND status = ?2 LIMIT ?3)
