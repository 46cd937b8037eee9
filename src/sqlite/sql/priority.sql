-- Returns the priority of an item. ?1 id
SELECT priority FROM ingest_queue WHERE id = ?1
