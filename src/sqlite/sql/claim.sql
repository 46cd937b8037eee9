-- Claims the item with this id, which one of the next_*.sql has just found.
-- item.sql reads it afterwards: RETURNING would copy the content into a temporary table first.
-- ?1 id ?2 token ?3 lease_until ?4 lease_ms ?5 worker ?6 now as text ?7 batch or NULL ?8, ?9 bytes of filler ?10 holder
UPDATE ingest_queue
   SET status = 'processing', attempt = max(0, min(CAST(attempt AS INTEGER), 1 << 60)) + 1, claim_token = ?2,
       lease_until = ?3, lease_ms = ?4, worker = ?5, started_at = ?6, finished_at = NULL, batch = ?7, cancelled = 0,
       filler = zeroblob(?8 * (length(filler) + length(filler2) > 0)),
       filler2 = zeroblob(?9 * (length(filler) + length(filler2) > 0)), holder = ?10
 WHERE id = ?1 AND status = 'pending'
