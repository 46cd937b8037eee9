-- Ends the pause of a group. ?1 queue ?2 group
DELETE FROM membox_queue_holds WHERE queue = ?1 AND group_key = ?2
