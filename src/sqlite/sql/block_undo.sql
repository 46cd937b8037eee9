-- Undoes the block of item.transaction.
ROLLBACK TO membox_queue_item
