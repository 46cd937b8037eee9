-- Removes the record of a process that no longer holds items of a queue. ?1 queue ?2 holder
DELETE FROM membox_queue_holders WHERE queue = ?1 AND holder = ?2
