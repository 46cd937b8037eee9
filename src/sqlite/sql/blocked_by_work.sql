-- Whether an item of the queue waits for one that is in progress in any queue. Of each of those, the first thousand that
-- wait for it are looked at. ?1 queue ?2 now
SELECT 1 FROM ingest_queue AS working INDEXED BY ingest_queue_leases
 WHERE working.status = 'processing' AND working.lease_until > ?2
   AND EXISTS (SELECT 1 FROM (SELECT item FROM membox_queue_after INDEXED BY membox_queue_after_needs
                               WHERE needs = working.id AND state = 0 LIMIT 1000) AS edge
                CROSS JOIN ingest_queue AS waiting ON waiting.id = edge.item
                WHERE waiting.queue = ?1 AND waiting.status = 'blocked')
 LIMIT 1
