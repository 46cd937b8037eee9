-- Lists items that wait for an item and are not done; one that waits twice is listed twice. ?1 item ?2 how many
SELECT waiting.id FROM main.membox_queue_after AS edge INDEXED BY membox_queue_after_needs
  CROSS JOIN main.ingest_queue AS waiting ON waiting.id = edge.item
 WHERE edge.needs = ?1 AND waiting.status <> 'done' LIMIT ?2
