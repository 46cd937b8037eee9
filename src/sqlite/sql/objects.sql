-- Lists the tables, indexes, views and triggers in the file that have our names, with their SQL.
SELECT type, name, sql FROM sqlite_schema
 WHERE sql IS NOT NULL
   AND (name LIKE 'ingest\_queue%' ESCAPE '\' OR name LIKE 'membox\_queue\_%' ESCAPE '\')
 ORDER BY rowid
