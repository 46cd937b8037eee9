-- Makes delayed items claimable that are due, or whose `run_at` is not a number; at most ?3 of each kind.
-- ?1 queue ?2 now ?3 how many ?4, ?5 bytes of filler
UPDATE ingest_queue SET run_at = NULL, filler = zeroblob(?4 * (length(filler) + length(filler2) > 0)),
       filler2 = zeroblob(?5 * (length(filler) + length(filler2) > 0))
 WHERE (id IN (SELECT id FROM ingest_queue INDEXED BY ingest_queue_delayed
                WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND run_at <= ?2
                ORDER BY run_at LIMIT ?3)
     OR id IN (SELECT id FROM ingest_queue INDEXED BY ingest_queue_delayed
                WHERE queue = ?1 AND status = 'pending' AND run_at IS NOT NULL AND run_at >= '' LIMIT ?3))
   AND +run_at IS NOT NULL
