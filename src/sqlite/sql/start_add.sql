-- Records a claim that a rate counts. ?1 queue ?2 group or '' ?3 number ?4 now
INSERT INTO membox_queue_starts (queue, group_key, number, at) VALUES (?1, ?2, ?3, ?4)
