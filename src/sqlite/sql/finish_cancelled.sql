-- Ends a claim that was cancelled while in progress as `cancelled`, whatever its worker reported.
-- ?1 id ?2 queue ?3 attempt ?4 token ?5 now as text
UPDATE main.ingest_queue
   SET status = 'cancelled', finished_at = ?5, claim_token = NULL, lease_until = NULL, lease_ms = NULL, holder = NULL, batch = NULL
 WHERE id = ?1 AND queue = ?2 AND status = 'processing' AND attempt IS ?3 AND claim_token IS ?4 AND cancelled = 1
