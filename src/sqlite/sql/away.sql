-- Counts what began in a queue, is elsewhere now and has not ended. ?1 queue
SELECT count(*) FROM ingest_queue INDEXED BY ingest_queue_away
 WHERE home = ?1 AND home <> queue AND status IN ('pending', 'processing', 'blocked')
