-- Whether a receipt is still valid, and whether its item was cancelled. ?1 id ?2 queue ?3 attempt ?4 token
SELECT cancelled FROM main.ingest_queue
 WHERE id = ?1 AND queue = ?2 AND status = 'processing' AND attempt IS ?3 AND claim_token IS ?4
