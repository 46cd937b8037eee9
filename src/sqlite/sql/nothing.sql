-- Does nothing.
SELECT 1 WHERE 0
