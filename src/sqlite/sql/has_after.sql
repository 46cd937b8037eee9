-- Whether any item of the file waits or waited for another.
SELECT 1 FROM membox_queue_after WHERE item >= -9223372036854775808 LIMIT 1
