-- Cancels up to ?3 items, of all queues, whose time is over. One in progress becomes `cancelled` when its worker
-- reports. ?1 now as text ?2 now ?3 how many
UPDATE ingest_queue
   SET status = CASE status WHEN 'processing' THEN 'processing' ELSE 'cancelled' END,
       finished_at = CASE status WHEN 'processing' THEN finished_at ELSE ?1 END,
       cancelled = status = 'processing', because = NULL, run_at = NULL, error = 'it expired'
 WHERE id IN (SELECT id FROM ingest_queue INDEXED BY ingest_queue_expiring
               WHERE expires_at IS NOT NULL AND cancelled = 0 AND status IN ('pending', 'processing', 'blocked')
                 AND expires_at <= ?2
               LIMIT ?3)
