-- Returns the status of an item of any queue. ?1 id
SELECT status FROM main.ingest_queue WHERE id = ?1
