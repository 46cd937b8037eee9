-- Whether a receipt is still valid, and whether its item was cancelled or has expired.
-- ?1 id ?2 queue ?3 attempt ?4 token ?5 now
SELECT cancelled = 1 OR coalesce(expires_at <= ?5, 0) FROM main.ingest_queue
 WHERE id = ?1 AND queue = ?2 AND status = 'processing' AND attempt IS ?3 AND claim_token IS ?4
