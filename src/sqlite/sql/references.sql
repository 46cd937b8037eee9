-- Lists the foreign keys of other tables that refer to items: table, number of the key, its column, the item's column.
SELECT child.name, key.id, key."from", coalesce(key."to", 'id')
  FROM sqlite_schema AS child, pragma_foreign_key_list(child.name) AS key
 WHERE child.type = 'table' AND child.name NOT LIKE 'membox\_queue\_%' ESCAPE '\' AND child.sql LIKE '%ingest\_queue%' ESCAPE '\'
   AND key."table" = 'ingest_queue' COLLATE NOCASE
   AND EXISTS (SELECT 1 FROM pragma_table_info('ingest_queue') WHERE name = coalesce(key."to", 'id') COLLATE NOCASE)
 ORDER BY child.name, key.id, key.seq
