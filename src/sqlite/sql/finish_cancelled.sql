-- Ends a claim that was cancelled or has expired while in progress as `cancelled`, whatever its worker reported.
-- ?1 id ?2 queue ?3 attempt ?4 token ?5 now as text ?6 whether it has a group, or NULL ?7 now
UPDATE main.ingest_queue
   SET status = 'cancelled', finished_at = ?5, claim_token = NULL, lease_until = NULL, lease_ms = NULL, holder = NULL, batch = NULL,
       error = CASE cancelled WHEN 1 THEN error ELSE 'it expired' END
 WHERE id = ?1 AND queue = ?2 AND status = 'processing' AND attempt IS ?3 AND claim_token IS ?4
   AND (cancelled = 1 OR expires_at <= ?7) AND (?6 IS NULL OR (group_key IS NOT NULL) = ?6)
