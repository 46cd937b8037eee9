-- Returns what a stage keeps of the one before: its content if ?2, the type of its content, and its headers. ?1 id
SELECT CASE WHEN ?2 THEN content END, content_type, headers FROM main.ingest_queue WHERE id = ?1
