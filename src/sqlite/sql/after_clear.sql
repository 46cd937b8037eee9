-- Forgets which items an item waits for. ?1 item
DELETE FROM main.membox_queue_after WHERE item = ?1
