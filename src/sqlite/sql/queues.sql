-- How many items stand in each status, of every queue of the file, by name.
SELECT pending, processing, done, failed, blocked, cancelled, queue FROM membox_queue_counts ORDER BY queue
