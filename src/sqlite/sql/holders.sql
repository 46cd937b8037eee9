-- Lists the processes that have claimed from a queue; a holder that is not an integer is skipped. ?1 queue ?2 how many
SELECT holder FROM membox_queue_holders WHERE queue = ?1 AND typeof(holder) = 'integer' LIMIT ?2
