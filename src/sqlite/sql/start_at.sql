-- Returns when a claim that a rate counts was made. ?1 queue ?2 group or '' ?3 number
SELECT CAST(at AS INTEGER) FROM membox_queue_starts WHERE queue = ?1 AND group_key = ?2 AND number = ?3
