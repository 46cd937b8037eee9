-- Returns an item whose dependents are still to be updated.
SELECT item FROM main.membox_queue_awaited WHERE item >= -9223372036854775808 LIMIT 1
