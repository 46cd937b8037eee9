-- Whether the worker lease is stored in our own table. In a file that membox made it is in membox's `meta`.
SELECT EXISTS (SELECT 1 FROM membox_queue_meta WHERE key = 'worker_lease_is_here')
