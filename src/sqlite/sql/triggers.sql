-- Names all triggers on our tables.
SELECT name FROM sqlite_schema
 WHERE type = 'trigger' AND (tbl_name = 'ingest_queue' COLLATE NOCASE OR tbl_name LIKE 'membox\_queue\_%' ESCAPE '\')
