-- Whether the largest id that SQLite can assign is in use or was used.
SELECT 9223372036854775807 IN
       (SELECT seq FROM sqlite_sequence WHERE name = 'ingest_queue' UNION ALL SELECT max(id) FROM ingest_queue)
