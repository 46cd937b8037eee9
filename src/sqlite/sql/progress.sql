-- Reads the progress of an attempt. ?1 item ?2 attempt
SELECT fraction, note FROM membox_queue_progress WHERE item = ?1 AND attempt = ?2
