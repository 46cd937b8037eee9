"""The fixtures of the pytest plugin, and what it tells the loops about pytest's own exceptions."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from membox_queue.errors import end_loops_on
from membox_queue.testing.assertions import assert_after, assert_done, assert_empty, assert_enqueued, assert_failed
from membox_queue.testing.clock import FakeClock
from membox_queue.testing.draining import DrainNow
from membox_queue.testing.faults import Faults

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator
    from pathlib import Path

    from membox_queue import Item, Queue


def pytest_configure(config: pytest.Config) -> None:
    """Let a test that fails, is skipped or ends the run inside a handler do so: its item is not charged with it."""
    config.add_cleanup(end_loops_on(pytest.fail.Exception, pytest.skip.Exception, pytest.exit.Exception))


class MakeQueue(Protocol):
    """The type of the `make_queue` fixture."""

    def __call__(self, name: str = "ingest", *, path: str | os.PathLike[str] | None = None, **options: Any) -> Queue:
        """Open a queue in the test's own temporary file, or in `path`; it is closed when the test ends."""


@pytest.fixture
def fake_clock() -> Generator[FakeClock]:
    """The clock of all queues of this process, stopped: `advance(seconds)`, `set(datetime)`, `now()`."""
    with FakeClock() as clock:
        yield clock


@pytest.fixture
def membox_faults() -> Generator[Faults]:
    """Failures on request: `busy`, `disk_full`, `crash_before`, `crash_after`."""
    faults = Faults()
    yield faults
    faults.disarm()


@pytest.fixture(name="_membox_queues_made")
def queues_made() -> Generator[list[Queue]]:
    """The queues that this test has open."""
    made: list[Queue] = []
    yield made
    with contextlib.ExitStack() as closing:
        for queue in made:
            closing.callback(queue.close)


@pytest.fixture
def make_queue(_membox_queues_made: list[Queue], tmp_path: Path) -> MakeQueue:
    """Open queues: `make_queue("name", **options)`, all in one temporary file by default, or in `path`."""

    def make(name: str = "ingest", *, path: str | os.PathLike[str] | None = None, **options: Any) -> Queue:
        from membox_queue import Queue

        # A test does not survive a power cut, so it need not wait for the disk.
        options.setdefault("durability", "normal")
        queue = Queue(tmp_path / "membox_queue.db" if path is None else path, name, **options)
        _membox_queues_made.append(queue)
        return queue

    return make


@pytest.fixture
def membox_queue(make_queue: MakeQueue) -> Queue:
    """A queue in a temporary file."""
    return make_queue()


@pytest.fixture
def drain_now(_membox_queues_made: list[Queue]) -> DrainNow:
    """Handle everything in the queues of this test: `drain_now(handler)` returns a `DrainReport`."""
    return DrainNow(_membox_queues_made)


@pytest.fixture(name="assert_enqueued")
def assert_enqueued_fixture() -> Callable[..., list[Item]]:
    """See `membox_queue.testing.assert_enqueued`."""
    return assert_enqueued


@pytest.fixture(name="assert_done")
def assert_done_fixture() -> Callable[..., list[Item]]:
    """See `membox_queue.testing.assert_done`."""
    return assert_done


@pytest.fixture(name="assert_after")
def assert_after_fixture() -> Callable[..., list[Item | None]]:
    """See `membox_queue.testing.assert_after`."""
    return assert_after


@pytest.fixture(name="assert_failed")
def assert_failed_fixture() -> Callable[..., list[Item]]:
    """See `membox_queue.testing.assert_failed`."""
    return assert_failed


@pytest.fixture(name="assert_empty")
def assert_empty_fixture() -> Callable[..., None]:
    """See `membox_queue.testing.assert_empty`."""
    return assert_empty
