-- Forgets a process that holds nothing of a queue any more. ?1 queue ?2 holder
DELETE FROM membox_queue_holders WHERE queue = ?1 AND holder = ?2
