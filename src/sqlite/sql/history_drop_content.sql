-- Removes the contents of the stages behind an item. ?1 item
UPDATE main.membox_queue_history SET content = NULL, content_type = NULL WHERE item = ?1 AND content IS NOT NULL
