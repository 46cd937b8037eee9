-- Counts the unfinished items of each group. ?1 queue
SELECT group_key, pending, processing FROM membox_queue_groups WHERE queue = ?1 ORDER BY group_key
