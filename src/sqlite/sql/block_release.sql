-- Ends the block of item.transaction.
RELEASE membox_queue_item
