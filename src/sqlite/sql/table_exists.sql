-- Whether there is a table of that name. ?1 name
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)
