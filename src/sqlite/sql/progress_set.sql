-- Stores the progress of a claim if the receipt is valid. ?1 id ?2 queue ?3 attempt ?4 token ?5 fraction ?6 note
INSERT INTO main.membox_queue_progress (item, attempt, fraction, note)
SELECT id, attempt, ?5, ?6 FROM main.ingest_queue
 WHERE id = ?1 AND queue = ?2 AND status = 'processing' AND attempt = ?3 AND claim_token = ?4
ON CONFLICT (item) DO UPDATE SET attempt = excluded.attempt, fraction = excluded.fraction, note = excluded.note
