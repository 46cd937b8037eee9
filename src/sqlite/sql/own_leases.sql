-- Lists the records of worker leases, named locks and announced workers in our own table.
SELECT value FROM membox_queue_meta
 WHERE key = 'worker_lease' OR key GLOB 'worker_lease:*' OR key GLOB 'lock:*' OR key GLOB 'worker_announced:*'
