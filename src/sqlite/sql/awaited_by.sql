-- Records that the dependents of all items are to be updated that an item still waits for. ?1 item
INSERT INTO main.membox_queue_awaited
SELECT DISTINCT needs FROM main.membox_queue_after AS edge INDEXED BY membox_queue_after_open
 WHERE edge.item = ?1 AND edge.state <> 1
   AND NOT EXISTS (SELECT 1 FROM main.membox_queue_awaited AS known WHERE known.item = edge.needs)
