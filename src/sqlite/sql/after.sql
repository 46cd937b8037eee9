-- Lists the items that an item waits for or waited for, in their order; those that are gone too. ?1 item ?2 how many
SELECT needs FROM membox_queue_after WHERE item = ?1 ORDER BY place LIMIT ?2
