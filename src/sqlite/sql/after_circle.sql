-- Whether an item would wait for itself if it waited for another. ?1 item ?2 the other
WITH RECURSIVE chain (item) AS (
    SELECT ?2
    UNION
    SELECT needs FROM chain CROSS JOIN membox_queue_after INDEXED BY membox_queue_after_open
     WHERE membox_queue_after.item = chain.item AND state <> 1)
SELECT 1 FROM chain WHERE item = ?1 LIMIT 1
