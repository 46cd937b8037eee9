-- Reschedules a pending item; without a time it is due now. ?1 id ?2 queue ?3 run_at
UPDATE main.ingest_queue SET run_at = ?3 WHERE id = ?1 AND (queue = ?2 OR home = ?2) AND status = 'pending'
