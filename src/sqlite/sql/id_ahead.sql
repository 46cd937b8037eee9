-- The id so many rows further on, or the last one; NULL after that. ?1 id ?2 how many
SELECT max(id) FROM (SELECT id FROM ingest_queue WHERE id > ?1 ORDER BY id LIMIT ?2)
