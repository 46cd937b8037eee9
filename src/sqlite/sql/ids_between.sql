-- Finds items of one status in a range of ids. ?1 queue ?2 status ?3 after this id ?4 up to this id
SELECT id FROM ingest_queue WHERE id > ?3 AND id <= ?4 AND queue = ?1 AND status = ?2
