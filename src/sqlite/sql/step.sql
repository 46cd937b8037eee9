-- Finds a step of a stage by its name. ?1 item ?2 stage ?3 name
SELECT kind, result FROM membox_queue_steps WHERE item = ?1 AND stage = ?2 AND name = ?3
