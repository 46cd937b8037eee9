-- Reads the stored settings of a queue: one JSON object, and the group limit, which triggers read. ?1 queue
SELECT (SELECT value FROM membox_queue_meta WHERE key = 'settings:' || ?1),
       (SELECT value FROM membox_queue_meta WHERE key = 'group_limit:' || ?1)
