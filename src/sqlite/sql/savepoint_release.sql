-- Ends that part; its changes belong to the caller's transaction.
RELEASE membox_queue
