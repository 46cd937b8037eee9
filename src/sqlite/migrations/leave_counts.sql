-- The counts of versions 1 to 5 had another shape. Their queues stay known; the items are counted anew.
CREATE TEMP TABLE membox_queue_known AS SELECT queue FROM membox_queue_counts;
DROP TABLE membox_queue_counts;
CREATE TABLE membox_queue_counts (
    queue     TEXT PRIMARY KEY,
    active    INTEGER NOT NULL DEFAULT 0,
    done      INTEGER NOT NULL DEFAULT 0,
    failed    INTEGER NOT NULL DEFAULT 0,
    blocked   INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO membox_queue_counts (queue) SELECT queue FROM temp.membox_queue_known;
DROP TABLE temp.membox_queue_known;
