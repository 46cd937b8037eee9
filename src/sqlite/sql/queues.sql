-- Counts the items in each status for every queue of the file, by name.
SELECT pending, processing, done, failed, blocked, cancelled, queue FROM membox_queue_counts ORDER BY queue
