-- Begins the block of item.transaction in the caller's own transaction.
SAVEPOINT membox_queue_item
