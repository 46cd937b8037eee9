-- Sets the end of a lease if the receipt is valid. ?1 id ?2 queue ?3 attempt ?4 token ?5 until ?6 lease_ms
UPDATE ingest_queue SET lease_until = ?5, lease_ms = ?6
 WHERE id = ?1 AND queue = ?2 AND status = 'processing' AND attempt = ?3 AND claim_token = ?4
