-- Whether the worker lease is stored in our own table, because the application's `meta` cannot store it.
SELECT EXISTS (SELECT 1 FROM membox_queue_meta WHERE key = 'worker_lease_is_here')
