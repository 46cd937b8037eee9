-- Records that the dependents of an item are to be updated. ?1 item
INSERT INTO main.membox_queue_awaited
SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM main.membox_queue_awaited WHERE item = ?1)
