"""`with item.transaction(connection):`: the claim ends in the transaction of the caller's own writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from membox_queue.connections.drive import check_same_file, drive, link_to

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from membox_queue import _native


class OpenBlock:
    """The block on one connection, in three parts: two that run on it, and one that does not."""

    def __init__(self, connection: Any, block: _native.Block) -> None:
        self.link = link_to(connection)
        self.block = block
        # None: look at the running task.
        self.is_cancelled: bool | None = None

    def entered(self) -> Self:
        """Begin the block, and present the receipt."""
        link, block = self.link, self.block
        is_open = link.is_open
        try:
            check_same_file(link, block.location, block.path)
            drive(link, block.enter(is_open, link.is_begun))
        except BaseException:
            if not is_open:
                link.reset()
            raise
        return self

    def left(self, error: BaseException | None) -> BaseException | None:
        """End the block on its connection. Return what it raised, or what ending it raised."""
        failure = error
        if failure is None:
            try:
                self.leave(None)
            except BaseException as raised:
                failure = raised
        if failure is not None:
            self.undo(failure)
        return failure

    def undo(self, failure: BaseException) -> None:
        """Undo the block; in the caller's own transaction the failure is recorded there."""
        try:
            if self.leave(failure):
                self.block.mark_recorded()
        except BaseException as raised:
            # `settle` records the failure then; what undoing it raised matters less.
            if not isinstance(raised, Exception):
                raise

    def leave(self, error: BaseException | None) -> Any:
        """Run the statements that leave the block."""
        return drive(self.link, self.block.leave(error, self.is_cancelled, self.link.is_begun))

    def settle(self, failure: BaseException | None) -> None:
        """Record what the connection could not, not on the connection."""
        self.block.settle(failure, self.is_cancelled)


class Transaction:
    """What `item.transaction` returns."""

    def __init__(self, connection: Any, block: _native.Block) -> None:
        self.open = OpenBlock(connection, block)

    def __enter__(self) -> _native.Item[Any]:
        return self.open.entered().block.item

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        failure = self.open.left(error)
        self.open.settle(failure)
        if failure is not error and failure is not None:
            raise failure
