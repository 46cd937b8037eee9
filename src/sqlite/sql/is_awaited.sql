-- Whether the dependents of an item are still to be updated. ?1 item
SELECT 1 FROM membox_queue_awaited WHERE item = ?1
