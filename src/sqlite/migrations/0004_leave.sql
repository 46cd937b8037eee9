-- What files of versions 1 to 3 have in another shape.
DROP VIEW IF EXISTS membox_queue_group_moved;
DROP TRIGGER IF EXISTS ingest_queue_unclaim;
DROP TRIGGER IF EXISTS ingest_queue_count_delete;
DROP TRIGGER IF EXISTS ingest_queue_group_insert;
DROP TRIGGER IF EXISTS ingest_queue_group_update;
DROP TRIGGER IF EXISTS ingest_queue_group_leave;
DROP TRIGGER IF EXISTS ingest_queue_group_delete;
DROP TRIGGER IF EXISTS ingest_queue_history_delete;
