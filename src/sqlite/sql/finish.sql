-- Records the end of a claim if the receipt is valid and the item was neither cancelled in the meantime nor has expired.
-- ?1 id ?2 queue ?3 attempt ?4 token ?5 status ?6 retries or NULL ?7 error ?8 result ?9 run_at ?10 finished_at
-- ?11 gave_up ?12, ?13 bytes of filler ?14 whether it has a group, or NULL ?15 now
UPDATE main.ingest_queue
   SET status = ?5, retries = coalesce(?6, retries), error = CASE ?5 WHEN 'done' THEN NULL ELSE coalesce(?7, error) END,
       result = ?8, run_at = ?9, finished_at = ?10, gave_up = ?11,
       started_at = CASE WHEN ?5 IN ('pending', 'blocked') THEN NULL ELSE started_at END,
       worker = CASE WHEN ?5 IN ('pending', 'blocked') THEN NULL ELSE worker END,
       claim_token = NULL, lease_until = NULL, lease_ms = NULL, holder = NULL, batch = NULL,
       filler = zeroblob(?12 * (length(filler) + length(filler2) > 0)),
       filler2 = zeroblob(?13 * (length(filler) + length(filler2) > 0))
 WHERE id = ?1 AND queue = ?2 AND status = 'processing' AND attempt IS ?3 AND claim_token IS ?4 AND cancelled = 0
   AND (?14 IS NULL OR (group_key IS NOT NULL) = ?14) AND (expires_at IS NULL OR expires_at > ?15)
