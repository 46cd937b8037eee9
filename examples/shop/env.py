"""The environment of Alembic for the shop: `include_name` keeps autogenerate away from the queue's tables."""

from alembic import context
from membox_queue.alembic import include_name
from shop import Base, engine

with engine.connect() as connection:
    context.configure(
        connection=connection, target_metadata=Base.metadata, include_name=include_name, render_as_batch=True
    )
    with context.begin_transaction():
        context.run_migrations()
