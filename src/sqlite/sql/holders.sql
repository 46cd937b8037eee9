-- The processes that have claimed something of a queue, a bounded number. ?1 queue ?2 how many
SELECT holder FROM membox_queue_holders WHERE queue = ?1 LIMIT ?2
