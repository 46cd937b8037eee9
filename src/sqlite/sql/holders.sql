-- The processes that have claimed something of a queue, a bounded number; what is no number is no process. ?1 queue
-- ?2 how many
SELECT holder FROM membox_queue_holders WHERE queue = ?1 AND typeof(holder) = 'integer' LIMIT ?2
