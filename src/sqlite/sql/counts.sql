-- How many items of a queue stand in each status. ?1 queue
SELECT status, count(*) FROM ingest_queue WHERE queue = ?1 GROUP BY status
