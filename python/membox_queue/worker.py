"""Forwards to `workers.names`, where native code will import `check_spawn` from once it is rebuilt."""

from membox_queue.workers.names import check_spawn as check_spawn
