"""Workers: one pool for several queues (`pool`), a detached process (`spawn`), handlers by name (`names`)."""
