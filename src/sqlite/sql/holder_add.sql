-- Records a process that is about to claim from a queue. ?1 queue ?2 holder
INSERT OR IGNORE INTO membox_queue_holders (queue, holder) VALUES (?1, ?2)
