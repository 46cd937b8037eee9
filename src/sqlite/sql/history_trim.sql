-- Keeps only the latest attempts of an item. ?1 item ?2 attempt ?3 how many
DELETE FROM main.membox_queue_history WHERE item = ?1 AND attempt <= ?2 - ?3
