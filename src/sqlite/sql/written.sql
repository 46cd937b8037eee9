-- Returns the id of the row that the connection inserted last, and how many rows its last statement changed.
SELECT last_insert_rowid(), changes()
