-- Of several unfinished items with one key, which came in while no index refused them, the first has it.
UPDATE ingest_queue SET dedup_key = NULL
 WHERE dedup_key IS NOT NULL AND status IN ('pending', 'processing', 'blocked')
   AND EXISTS (SELECT 1 FROM ingest_queue AS first
                WHERE coalesce(first.home, first.queue) = coalesce(ingest_queue.home, ingest_queue.queue)
                  AND first.dedup_key = ingest_queue.dedup_key
                  AND first.status IN ('pending', 'processing', 'blocked') AND first.id < ingest_queue.id);
