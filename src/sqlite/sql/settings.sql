-- What is stored of a queue's settings: one JSON object, and the limit of its groups, which triggers read. ?1 queue
SELECT (SELECT value FROM membox_queue_meta WHERE key = 'settings:' || ?1),
       (SELECT value FROM membox_queue_meta WHERE key = 'group_limit:' || ?1)
