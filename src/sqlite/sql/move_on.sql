-- Begins the next stage of a claimed item if the receipt is valid and the item was not cancelled in the meantime. Its key
-- stays with the queue it was enqueued into. What is given as NULL, or whose flag is 0, stays as it is.
-- ?1 id ?2 queue ?3 attempt ?4 token ?5 new queue or NULL ?6 content ?7 content_type ?8 flag ?9 checksum ?10 priority
-- ?11 run_at ?12 flag ?13 headers ?14 flag ?15 group ?16 flag ?17 project ?18 flag ?19 max_retries ?20 flag ?21 expires_at
-- ?22, ?23 bytes of filler ?24 now ?25 status
UPDATE main.ingest_queue
   SET home = coalesce(home, CASE WHEN queue <> ?5 THEN queue END), queue = coalesce(?5, queue), stage = stage + 1,
       status = ?25, content = coalesce(?6, content), content_type = coalesce(?7, content_type),
       checksum = CASE WHEN ?8 THEN ?9 ELSE checksum END, priority = coalesce(?10, priority), run_at = ?11,
       headers = CASE WHEN ?12 THEN ?13 ELSE headers END, group_key = CASE WHEN ?14 THEN ?15 ELSE group_key END,
       project = CASE WHEN ?16 THEN ?17 ELSE project END, max_retries = CASE WHEN ?18 THEN ?19 ELSE max_retries END,
       expires_at = CASE WHEN ?20 THEN ?21 ELSE expires_at END,
       retries = 0, gave_up = 0, error = NULL, result = NULL, started_at = NULL, worker = NULL,
       claim_token = NULL, lease_until = NULL, lease_ms = NULL, holder = NULL, batch = NULL,
       filler = zeroblob(?22), filler2 = zeroblob(?23)
 WHERE id = ?1 AND queue = ?2 AND status = 'processing' AND attempt IS ?3 AND claim_token IS ?4 AND cancelled = 0
   AND (expires_at IS NULL OR expires_at > ?24)
