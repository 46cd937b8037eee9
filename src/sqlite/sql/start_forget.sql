-- Deletes records of claims that no longer matter to a rate. ?1 queue ?2 group or '' ?3 up to this number
DELETE FROM membox_queue_starts WHERE queue = ?1 AND group_key = ?2 AND number <= ?3
