-- Deletes up to ?3 records of claims too old for any rate of the queue. ?1 queue ?2 before ?3 how many
DELETE FROM membox_queue_starts
 WHERE (queue, group_key, number) IN (
       SELECT queue, group_key, number FROM membox_queue_starts INDEXED BY membox_queue_starts_at
        WHERE queue = ?1 AND at <= ?2 LIMIT ?3)
