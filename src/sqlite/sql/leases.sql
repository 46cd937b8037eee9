-- Lists the records of worker leases and named locks in membox's table.
SELECT value FROM meta WHERE key = 'worker_lease' OR key GLOB 'worker_lease:*' OR key GLOB 'lock:*'
