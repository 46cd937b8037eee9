-- The tables, indexes, views and triggers of the file that have names of ours, and their text.
SELECT type, name, sql FROM sqlite_schema
 WHERE sql IS NOT NULL
   AND (name LIKE 'ingest\_queue%' ESCAPE '\' OR name LIKE 'membox\_queue\_%' ESCAPE '\')
 ORDER BY rowid
