-- Removes the steps of an item. ?1 item
DELETE FROM main.membox_queue_steps WHERE item = ?1
