-- Ends an item without a claim, unless it is done or was cancelled. A claim on it is over.
-- ?1 id ?2 queue ?3 done or failed ?4 result ?5 error ?6 now as text ?7, ?8 bytes of filler
UPDATE main.ingest_queue
   SET status = ?3, result = ?4, error = ?5, finished_at = ?6, gave_up = ?3 = 'failed', run_at = NULL, worker = NULL,
       claim_token = NULL, lease_until = NULL, lease_ms = NULL, holder = NULL, batch = NULL,
       filler = zeroblob(?7), filler2 = zeroblob(?8)
 WHERE id = ?1 AND (queue = ?2 OR home = ?2) AND status IN ('pending', 'processing', 'blocked', 'failed') AND cancelled = 0
