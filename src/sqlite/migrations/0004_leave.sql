-- What files of versions 1 to 3 have in another shape.
DROP VIEW membox_queue_group_moved;
DROP TRIGGER ingest_queue_unclaim;
DROP TRIGGER ingest_queue_count_delete;
DROP TRIGGER ingest_queue_group_insert;
DROP TRIGGER ingest_queue_group_update;
DROP TRIGGER ingest_queue_group_leave;
DROP TRIGGER ingest_queue_group_delete;
DROP TRIGGER ingest_queue_history_delete;
