-- Returns the kind of the object with this name: table, view, index or trigger. ?1 name
SELECT type FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE
