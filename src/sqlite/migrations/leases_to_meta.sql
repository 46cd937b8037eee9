-- Moves worker leases and named locks from our own table to membox's.
DELETE FROM meta WHERE key IN (SELECT key FROM membox_queue_meta
                                WHERE key = 'worker_lease' OR key GLOB 'worker_lease:*' OR key GLOB 'lock:*');
INSERT INTO meta (key, value)
SELECT key, value FROM membox_queue_meta
 WHERE key = 'worker_lease' OR key GLOB 'worker_lease:*' OR key GLOB 'lock:*';
DELETE FROM membox_queue_meta
 WHERE key = 'worker_lease' OR key GLOB 'worker_lease:*' OR key GLOB 'lock:*' OR key = 'worker_lease_is_here';
