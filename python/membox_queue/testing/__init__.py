"""The pytest plugin: a temporary queue, a clock that moves when told, failures on request, and assertions.

pytest finds it by its entry point, so nothing need be imported; `docs/testing.md` is the guide. The native module is
loaded by the first fixture that needs it.
"""

from membox_queue.errors import SimulatedCrash
from membox_queue.testing.assertions import assert_after, assert_done, assert_empty, assert_enqueued, assert_failed
from membox_queue.testing.clock import FakeClock
from membox_queue.testing.draining import DrainedNow, DrainNow
from membox_queue.testing.faults import Fault, Faults
from membox_queue.testing.plugin import (
    MakeQueue,
    assert_after_fixture,  # noqa: F401
    assert_done_fixture,  # noqa: F401 - pytest finds fixtures and hooks as attributes of the plugin
    assert_empty_fixture,  # noqa: F401
    assert_enqueued_fixture,  # noqa: F401
    assert_failed_fixture,  # noqa: F401
    drain_now,  # noqa: F401
    fake_clock,  # noqa: F401
    make_queue,  # noqa: F401
    membox_faults,  # noqa: F401
    membox_queue,  # noqa: F401
    pytest_configure,  # noqa: F401
    queues_made,  # noqa: F401
)

__all__ = [
    "DrainNow",
    "DrainedNow",
    "FakeClock",
    "Fault",
    "Faults",
    "MakeQueue",
    "SimulatedCrash",
    "assert_after",
    "assert_done",
    "assert_empty",
    "assert_enqueued",
    "assert_failed",
]
