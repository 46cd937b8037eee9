-- Makes the triggers order a group anew. ?1 queue ?2 group
INSERT INTO membox_queue_group_moved (queue, group_key) VALUES (?1, ?2)
