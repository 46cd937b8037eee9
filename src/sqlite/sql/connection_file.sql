-- Returns the file of a connection. As bytes: a path need not be valid text.
SELECT CAST(file AS BLOB) FROM pragma_database_list WHERE name = 'main'
