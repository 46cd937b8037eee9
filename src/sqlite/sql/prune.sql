-- Removes finished items of one status that ended before ?3 and whose key is not reserved any more.
-- ?1 queue ?2 status ?3 finished before ?4 now ?5 after this id ?6 up to this id
DELETE FROM ingest_queue
 WHERE id > ?5 AND id <= ?6 AND queue = ?1 AND status = ?2 AND finished_at < ?3
   AND (key_until IS NULL OR key_until <= ?4)
