-- Pauses a group until its rate allows the next claim. ?1 queue ?2 group ?3 until
INSERT INTO membox_queue_holds (queue, group_key, until) VALUES (?1, ?2, ?3)
ON CONFLICT (queue, group_key) DO UPDATE SET until = excluded.until
