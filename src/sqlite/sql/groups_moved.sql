-- Makes the triggers order all groups of a queue anew, after the group limit changed. ?1 queue
INSERT INTO membox_queue_group_moved (queue, group_key)
SELECT queue, group_key FROM membox_queue_groups WHERE queue = ?1
