-- Records a step of the present stage if the receipt is valid; one of that name is replaced.
-- ?1 id ?2 queue ?3 attempt ?4 token ?5 name ?6 kind ?7 result ?8 now as text
INSERT OR REPLACE INTO main.membox_queue_steps (item, stage, name, kind, result, at)
SELECT id, stage, ?5, ?6, ?7, ?8 FROM main.ingest_queue
 WHERE id = ?1 AND queue = ?2 AND status = 'processing' AND attempt IS ?3 AND claim_token IS ?4
