-- Names the triggers on our table that belong to the application.
SELECT name FROM main.sqlite_master
 WHERE type = 'trigger' AND tbl_name = 'ingest_queue' COLLATE NOCASE
   AND name NOT LIKE 'ingest\_queue\_%' ESCAPE '\' AND name NOT LIKE 'membox\_queue\_%' ESCAPE '\'
 ORDER BY name LIMIT 10
