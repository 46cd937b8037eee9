"""Forwards to `connections.drive`, where native code will import `enqueue` from once it is rebuilt."""

from membox_queue.connections.drive import enqueue as enqueue
