-- Lets all groups of a queue be looked at again, after their limit was changed. ?1 queue
INSERT INTO membox_queue_group_moved (queue, group_key)
SELECT queue, group_key FROM membox_queue_groups WHERE queue = ?1
