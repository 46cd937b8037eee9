-- Returns the number of the latest claim that a rate counts. ?1 queue ?2 group, or '' for the whole queue
SELECT CAST(max(number) AS INTEGER) FROM membox_queue_starts WHERE queue = ?1 AND group_key = ?2
