-- Returns the place behind the last item that an item waits for. ?1 item
SELECT coalesce(max(place) + 1, 0) FROM main.membox_queue_after WHERE item = ?1
