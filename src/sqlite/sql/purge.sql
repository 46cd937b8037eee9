-- Deletes up to ?3 items of one status other than blocked. Each part uses the index that covers its rows.
-- ?1 queue ?2 status ?3 how many
DELETE FROM ingest_queue
 WHERE id IN (
       SELECT id FROM ingest_queue INDEXED BY ingest_queue_finished
        WHERE queue = ?1 AND (status = 'done' OR status = 'failed' OR status = 'cancelled') AND status = ?2
       UNION ALL
       SELECT id FROM ingest_queue INDEXED BY ingest_queue_ready
        WHERE queue = ?1 AND status = 'pending' AND run_at IS NULL AND behind = 0 AND ?2 = 'pending'
       UNION ALL
       SELECT id FROM ingest_queue INDEXED BY ingest_queue_group
        WHERE queue = ?1 AND group_key IS NOT NULL AND status = 'pending' AND run_at IS NULL AND behind <> 0
          AND ?2 = 'pending'
       UNION ALL
       SELECT id FROM ingest_queue INDEXED BY ingest_queue_delayed
        WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND ?2 = 'pending'
       UNION ALL
       SELECT id FROM ingest_queue INDEXED BY ingest_queue_leases
        WHERE queue = ?1 AND status = 'processing' AND ?2 = 'processing'
       LIMIT ?3)
