-- Records a stage that ends, with its content, if the receipt is valid and the item was not cancelled in the meantime.
-- ?1 id ?2 queue ?3 attempt ?4 token ?5 now as text ?6 now
INSERT OR REPLACE INTO main.membox_queue_history
    (item, attempt, ending, worker, started_at, ended_at, queue, stage, content, content_type)
SELECT id, attempt, 'moved', worker, started_at, ?5, queue, stage, content, content_type FROM main.ingest_queue
 WHERE id = ?1 AND queue = ?2 AND status = 'processing' AND attempt IS ?3 AND claim_token IS ?4 AND cancelled = 0
   AND (expires_at IS NULL OR expires_at > ?6)
