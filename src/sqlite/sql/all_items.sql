-- Counts the items of all queues, and the unfinished ones.
SELECT count(*), coalesce(sum(status NOT IN ('done', 'failed', 'cancelled')), 0) FROM ingest_queue
