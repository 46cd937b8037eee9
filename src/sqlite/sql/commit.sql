-- Commits a transaction that was begun on the caller's connection.
COMMIT
