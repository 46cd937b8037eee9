-- Removes a done item, unless its key is still reserved or an item that is not done needs it. ?1 id ?2 queue ?3 now
DELETE FROM main.ingest_queue
 WHERE id = ?1 AND queue = ?2 AND status = 'done' AND NOT coalesce(key_until > ?3, 0)
   AND NOT EXISTS (SELECT 1 FROM main.membox_queue_after AS edge INDEXED BY membox_queue_after_needs
                     CROSS JOIN main.ingest_queue AS waiting ON waiting.id = edge.item
                    WHERE edge.needs = ?1 AND waiting.status <> 'done')
