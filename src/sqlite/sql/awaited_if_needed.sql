-- Records that the dependents of an item are to be updated, if it has any. ?1 item
INSERT INTO main.membox_queue_awaited
SELECT ?1 WHERE EXISTS (SELECT 1 FROM main.membox_queue_after WHERE needs = ?1)
   AND NOT EXISTS (SELECT 1 FROM main.membox_queue_awaited WHERE item = ?1)
