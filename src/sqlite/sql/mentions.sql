-- Lists the objects in the file whose SQL may name one of ours: kind, name, table and SQL.
SELECT type, name, tbl_name, sql FROM sqlite_schema
 WHERE sql LIKE '%ingest\_queue%' ESCAPE '\' OR sql LIKE '%membox\_queue\_%' ESCAPE '\'
