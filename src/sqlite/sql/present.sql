-- Changes nothing if the receipt is valid, but takes the write lock, so that it stays so until the transaction ends.
-- ?1 id ?2 queue ?3 attempt ?4 token
UPDATE main.ingest_queue SET claim_token = claim_token
 WHERE id = ?1 AND queue = ?2 AND status = 'processing' AND attempt IS ?3 AND claim_token IS ?4 AND cancelled = 0
