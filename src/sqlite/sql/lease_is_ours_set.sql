-- Records that the worker lease is stored in our own table.
INSERT INTO membox_queue_meta (key, value) VALUES ('worker_lease_is_here', 'yes')
