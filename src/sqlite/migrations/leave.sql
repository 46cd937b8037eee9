-- What earlier versions made and no version makes any more. What has another shape now is made anew.
DROP INDEX IF EXISTS ingest_queue_failed;
DROP INDEX IF EXISTS ingest_queue_heads;
DROP TRIGGER IF EXISTS ingest_queue_count_delete;
DROP TRIGGER IF EXISTS ingest_queue_group_delete;
DROP TRIGGER IF EXISTS ingest_queue_history_delete;
