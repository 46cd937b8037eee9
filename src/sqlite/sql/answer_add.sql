-- Adds an item that has ended, under a key that stays reserved: the answer to an item that is still to come.
-- ?1 queue ?2 key ?3 key_until ?4 done or failed ?5 result ?6 error ?7 now as text ?8, ?9 bytes of filler
INSERT INTO main.ingest_queue
    (queue, content, content_type, status, result, error, enqueued_at, finished_at, dedup_key, key_until, gave_up,
     filler, filler2)
VALUES (?1, 'null', 'json', ?4, ?5, ?6, ?7, ?7, ?2, ?3, ?4 = 'failed', zeroblob(?8), zeroblob(?9))
