-- Finds groups whose pause is over, or ends later than any rate allows. ?1 queue ?2 now ?3 the furthest ?4 how many
SELECT group_key FROM membox_queue_holds INDEXED BY membox_queue_holds_until
 WHERE queue = ?1 AND (until <= ?2 OR until > ?3) AND typeof(group_key) = 'text' LIMIT ?4
