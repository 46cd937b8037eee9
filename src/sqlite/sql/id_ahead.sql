-- Returns the id ?2 rows after ?1, or the last id; NULL after the last. ?1 id ?2 how many
SELECT max(id) FROM (SELECT id FROM ingest_queue WHERE id > ?1 ORDER BY id LIMIT ?2)
