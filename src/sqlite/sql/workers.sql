-- Reads the records of worker loops, of all queues. ?1 how many
SELECT key, value FROM membox_queue_meta WHERE key >= 'worker:' AND key < 'worker;' LIMIT ?1
