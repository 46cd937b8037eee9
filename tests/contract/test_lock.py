"""lock: the right to do something alone, on the rules of the worker lease."""

import os
import threading

import pytest
from membox_queue import QueueBusyError, StaleClaimError


def test_one_holder_at_a_time_and_free_again_afterwards(queue, open_queue):
    with open_queue("other") as other:
        with queue.lock("nightly"):
            with pytest.raises(QueueBusyError, match=r"'nightly' is held by process \d+"), other.lock("nightly"):
                pytest.fail("the block must not run")
            with other.lock("weekly"):
                pass
        with other.lock("nightly") as lock:
            assert lock.name == "nightly"


def test_an_exception_frees_it_and_goes_on_its_way(queue):
    def work():
        with queue.lock("nightly"):
            raise KeyError("x")

    with pytest.raises(KeyError):
        work()
    assert queue.lock("nightly").acquire()


def test_a_lock_that_ran_out_is_taken_over_and_its_old_holder_changes_nothing(queue, open_queue, clock):
    old = queue.lock("nightly", ttl=10)
    assert old.acquire()
    clock.advance(11)
    new = open_queue().lock("nightly", ttl=10)
    assert new.acquire()
    assert not old.release()
    assert not queue.lock("nightly").acquire()
    assert new.release()
    assert not new.release()


def test_leaving_the_block_says_that_it_was_taken_over_meanwhile(queue, clock):
    def work():
        with queue.lock("nightly", ttl=10):
            clock.advance(11)
            assert queue.lock("nightly").acquire()

    with pytest.raises(StaleClaimError, match="'nightly' was taken over"):
        work()


def test_a_block_that_gave_it_back_itself_ends_as_usual(queue):
    with queue.lock("nightly") as lock:
        assert lock.release()
        assert not lock.held


def test_closing_the_queue_gives_its_locks_back(queue, open_queue):
    other = open_queue()
    with other.lock("nightly") as lock:
        other.close()
        assert not lock.held
        assert queue.lock("nightly").acquire()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_does_not_give_its_parents_lock_back(queue):
    with queue.lock("nightly") as lock:
        child = os.fork()
        if child == 0:
            os._exit(10 * lock.held + lock.release())
        assert os.waitpid(child, 0)[1] == 0
        assert lock.held
        assert not queue.lock("nightly").acquire()


def test_waiting_takes_it_when_it_is_free(queue):
    first = queue.lock("nightly")
    assert first.acquire()
    waiting = queue.lock("nightly", wait=30)
    taken = []
    thread = threading.Thread(target=lambda: taken.append(waiting.acquire()))
    thread.start()
    assert first.release()
    thread.join(30)
    assert taken == [True]


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 256])
def test_names_that_make_no_sense_are_refused(queue, name):
    with pytest.raises(ValueError, match="name"):
        queue.lock(name).acquire()
