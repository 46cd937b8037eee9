-- Counts the groups that have unfinished items. ?1 queue
SELECT count(*) FROM membox_queue_groups WHERE queue = ?1
