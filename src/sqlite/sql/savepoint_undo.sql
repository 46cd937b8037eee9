-- Undoes that part, which is still to be ended.
ROLLBACK TO membox_queue
