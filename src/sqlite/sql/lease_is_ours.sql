-- Whether the worker lease lives in our own table, because the application's meta does not take it.
SELECT EXISTS (SELECT 1 FROM membox_queue_meta WHERE key = 'worker_lease_is_here')
