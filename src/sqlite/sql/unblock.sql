-- Lets an item run that has nothing to wait for. ?1 id
UPDATE main.ingest_queue SET status = 'pending' WHERE id = ?1 AND status = 'blocked'
