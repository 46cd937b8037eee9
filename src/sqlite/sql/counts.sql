-- Counts the items of a queue in each status. ?1 queue
SELECT pending, processing, done, failed, blocked, cancelled FROM main.membox_queue_counts WHERE queue = ?1
