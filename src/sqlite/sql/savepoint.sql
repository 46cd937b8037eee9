-- Begins a part of the caller's transaction that can be undone.
SAVEPOINT membox_queue
