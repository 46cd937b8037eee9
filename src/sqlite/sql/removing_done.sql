-- Removes what belongs to a done item that remove_done.sql is about to remove. ?1 id ?2 queue ?3 now
INSERT INTO membox_queue_gone
SELECT id, queue, status, group_key, attempt FROM ingest_queue
 WHERE id = ?1 AND queue = ?2 AND status = 'done' AND NOT coalesce(key_until > ?3, 0)
   AND NOT EXISTS (SELECT 1 FROM membox_queue_after AS edge INDEXED BY membox_queue_after_needs
                     CROSS JOIN ingest_queue AS waiting ON waiting.id = edge.item
                    WHERE edge.needs = ?1 AND waiting.status <> 'done')
