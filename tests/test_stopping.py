"""How loops and waits end: signals, a grace, Ctrl-C, and an interpreter that exits."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from membox_queue import DrainReport, Queue
from programs import PROGRAMS

ITEMS = 10


class Loop:
    """A loop in a process of its own, with handlers that wait for a gate."""

    def __init__(self, process, gate, concurrency):
        self.process = process
        self.gate = gate
        for _ in range(concurrency):
            self.says("handling")

    def says(self, line):
        assert self.process.stdout.readline() == f"{line}\n"

    def stop(self, number):
        self.process.send_signal(number)
        self.says("stopping")

    def ends(self):
        """The lines it said last, what it complained of, and its return code."""
        said, complained = self.process.communicate(timeout=30)
        # Who tells of it may come late.
        return [line for line in said.splitlines() if line != "stopping"], complained, self.process.returncode


@pytest.fixture
def loop(path, queue, start, tmp_path):
    def loop(verb, concurrency, grace=30.0):
        queue.enqueue_many(range(ITEMS))
        gate = tmp_path / "gate"
        process = start(PROGRAMS / "loop.py", path, verb, concurrency, grace, gate, stderr=subprocess.PIPE)
        return Loop(process, gate, concurrency)

    return loop


def untouched(queue, count):
    """So many items are as if nobody had taken them."""
    items = queue.items("pending", limit=ITEMS)
    assert len(items) == count
    assert {(item.retries, item.error, item.worker) for item in items} == {(0, None, None)}
    assert queue.counts()["processing"] == 0
    assert not queue.worker_is_alive()


SIGNALS = [signal.SIGTERM, signal.SIGINT]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("verb", ["drain", "work"])
def test_a_signal_lets_running_handlers_end_and_leaves_the_rest(queue, loop, verb, concurrency, number):
    running = loop(verb, concurrency)
    running.stop(number)
    running.gate.touch()
    said, complained, code = running.ends()
    assert said == ["restored True", repr(DrainReport(done=concurrency, stopped=True))]
    assert (complained, code) == ("", 0)
    assert queue.counts()["done"] == concurrency
    untouched(queue, ITEMS - concurrency)


def test_a_signal_that_does_not_wake_the_main_thread_is_seen_all_the_same(queue, until):
    """Taken by another thread, as one that comes just before the main thread sleeps, it interrupts no wait."""
    first, *_ = queue.enqueue_many(range(ITEMS))
    both = threading.Barrier(2)

    def handler(item):
        both.wait(30)
        if item.id == first:
            main = threading.main_thread().ident
            until(lambda: sys._current_frames()[main].f_code.co_name == "wait" and is_asleep(os.getpid()))
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        until(lambda: any(loop.native.stopped for loop in queue._loops))

    assert queue.work(handler, concurrency=2) == DrainReport(done=2, stopped=True)


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 128 + 15), (signal.SIGINT, -2)])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_second_signal_leaves_at_once_and_gives_the_items_back(queue, loop, concurrency, number, expected):
    running = loop("work", concurrency)
    running.stop(number)
    running.process.send_signal(number)
    said, complained, code = running.ends()
    assert said == ["restored True"]
    assert code == expected
    assert ("KeyboardInterrupt" in complained) == (number == signal.SIGINT)
    untouched(queue, ITEMS)


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("verb", ["drain", "work"])
def test_what_still_runs_when_the_grace_is_over_is_given_back(queue, loop, verb, concurrency):
    running = loop(verb, concurrency, grace=0.05)
    running.process.send_signal(signal.SIGTERM)
    said, complained, code = running.ends()
    assert said == ["restored True", repr(DrainReport(released=concurrency, stopped=True))]
    assert (complained, code) == ("", 0)
    untouched(queue, ITEMS)


def test_a_handler_that_ends_after_the_grace_changes_nothing(queue, path, start, tmp_path):
    queue.enqueue("x")
    process = start(
        PROGRAMS / "end_after_the_grace.py",
        path,
    )
    said = process.communicate(timeout=30)[0].splitlines()
    assert said == [repr(DrainReport(released=1, stopped=True)), "True new"]


def test_signal_handlers_are_there_during_the_loop_and_restored_afterwards(queue):
    mine, during = [], []
    old = signal.signal(signal.SIGTERM, lambda *_: mine.append("mine"))
    try:
        before = [signal.getsignal(number) for number in SIGNALS]
        queue.enqueue("x")
        queue.drain(lambda item: during.extend(signal.getsignal(number) for number in SIGNALS))
        assert [signal.getsignal(number) for number in SIGNALS] == before
        assert all(handler not in before for handler in during)
        os.kill(os.getpid(), signal.SIGTERM)
        assert mine == ["mine"]
    finally:
        signal.signal(signal.SIGTERM, old)


def test_a_signal_that_was_ignored_on_purpose_stays_ignored(queue):
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        queue.enqueue_many(["a", "b"])
        assert queue.drain(lambda item: os.kill(os.getpid(), signal.SIGINT)) == DrainReport(done=2)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, old)


def test_handlers_are_restored_when_the_loop_ends_by_an_exception(queue):
    before = [signal.getsignal(number) for number in SIGNALS]
    queue.enqueue("x")

    def handler(item):
        raise SystemExit

    with pytest.raises(SystemExit):
        queue.drain(handler)
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_loop_in_another_thread_installs_no_signal_handlers(queue, concurrency):
    before = [signal.getsignal(number) for number in SIGNALS]
    during, reports = [], []
    queue.enqueue("x")

    def handler(item):
        during.extend(signal.getsignal(number) for number in SIGNALS)

    thread = threading.Thread(target=lambda: reports.append(queue.drain(handler, concurrency=concurrency)))
    thread.start()
    thread.join(30)
    assert reports == [DrainReport(done=1)]
    assert during == before


def test_a_signal_during_a_drain_inside_a_handler_ends_both(path, queue, start):
    queue.enqueue_many(range(3))
    process = start(
        PROGRAMS / "drain_inside_a_handler.py",
        path,
    )
    assert process.communicate(timeout=30)[0].splitlines() == ["1 True", "1 True"]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_signal_to_a_child_of_a_handler_is_the_childs_own(path, queue, start, number, is_nested):
    program = PROGRAMS / "signal_a_child.py"
    queue.enqueue("x")
    said = start(program, path, int(number), is_nested).communicate(timeout=30)[0].splitlines()
    assert said == [str(int(number)), repr(DrainReport(done=1))]


def test_a_child_of_a_handler_that_stops_the_queue_has_no_grace_that_could_end_it(path, queue, start):
    program = PROGRAMS / "stop_in_a_child.py"
    queue.enqueue("x")
    assert start(program, path).communicate(timeout=30)[0].splitlines() == ["0", repr(DrainReport(done=1))]


def test_a_second_signal_during_a_drain_inside_a_handler_is_held_against_no_item(path, queue, start):
    queue.enqueue("x")
    process = start(PROGRAMS / "two_signals_inside_a_handler.py", path, stderr=subprocess.PIPE)
    assert (process.communicate(timeout=30), process.returncode) == (("", ""), 128 + 15)
    untouched(queue, 1)
    with Queue(path, "inner") as inner:
        untouched(inner, 1)


@pytest.mark.parametrize("how", ["stop", "signal"])
def test_the_grace_of_a_loop_is_over_also_inside_another_loop_with_a_longer_one(path, queue, start, how):
    queue.enqueue("x")
    process = start(PROGRAMS / "two_graces.py", path, how, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "handling\n"
    if how == "signal":
        process.send_signal(signal.SIGTERM)
    said, complained = process.communicate(timeout=30)
    assert (said, complained) == (f"{DrainReport(released=1, stopped=True)} 1\n", "")
    untouched(queue, 1)


# Ctrl-C while a call waits in native code. The waits are told to go on for minutes.

WAITS = ["claim", "claim_many", "wait", "lock", "enqueue", "work", "work4", "drain", "drain4"]


def is_asleep(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.parametrize("call", WAITS)
def test_ctrl_c_ends_a_wait_in_native_code_at_once(path, start, until, call):
    process = start(PROGRAMS / "interrupted_wait.py", path, call, stderr=subprocess.PIPE)
    took = []
    for _ in range(3):
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.05)
        until(lambda: is_asleep(process.pid))
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        took.append(float(process.stdout.readline()) - sent)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 0
    # The aim is 100 ms; the poll that would notice it anyway comes after 500.
    assert min(took) < 0.3


# An interpreter that exits while threads wait or work.


@pytest.mark.parametrize("kind", ["daemon", "thread"])
@pytest.mark.parametrize("call", WAITS)
def test_an_interpreter_that_exits_during_a_wait_neither_hangs_nor_crashes(path, start, call, kind):
    process = start(PROGRAMS / "exit_during_a_wait.py", path, call, kind, stderr=subprocess.PIPE)
    said, complained = process.communicate(timeout=30)
    assert (process.returncode, complained) == (0, "")
    assert said.splitlines()[0] == "leaving"


@pytest.mark.parametrize("kind", ["daemon", "thread"])
@pytest.mark.parametrize("verb", ["work", "work4", "drain"])
def test_an_interpreter_that_exits_does_not_wait_for_work_that_never_ends(path, queue, start, verb, kind):
    process = start(PROGRAMS / "exit_at_work.py", path, kind, verb, stderr=subprocess.PIPE)
    said, complained = process.communicate(timeout=10)
    assert (process.returncode, said, complained) == (0, "leaving\n", "")
    queue.purge("done")
    assert queue.claim(wait=30) is not None


def test_a_process_that_lives_on_when_its_interpreter_is_gone_does_not_crash(path, queue, start, writer):
    process = start(PROGRAMS / "outlive_the_interpreter.py", path, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "open\n"
    writer()
    assert process.communicate("\n", timeout=30) == ("", "")
    assert process.returncode == 0


@pytest.mark.parametrize("kind", ["daemon", "thread"])
def test_an_interpreter_that_exits_while_a_thread_waits_to_write_does_not_crash(path, queue, start, writer, kind):
    process = start(PROGRAMS / "exit_behind_a_writer.py", path, kind, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "open\n"
    close_if_idle = writer()
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "leaving\n"
    if kind == "thread":
        # A write that somebody asked for is waited for, as any thread is.
        close_if_idle()
    said, complained = process.communicate(timeout=30)
    assert (process.returncode, said, complained) == (0, "", "")
    assert queue.pending() == (kind == "thread")


@pytest.mark.parametrize("how", ["closed", "abandoned"])
def test_an_interpreter_that_exits_with_an_event_loop_under_way_does_not_hang(path, start, how):
    process = start(PROGRAMS / "exit_with_an_event_loop.py", path, how, stderr=subprocess.PIPE)
    said, complained = process.communicate(timeout=20)
    assert (process.returncode, said) == (0, "leaving\n")
    if how == "closed":
        assert complained == ""
    assert "Fatal" not in complained
    assert "panicked" not in complained


def test_a_process_that_exits_with_everything_in_hand_leaves_nothing_held(path, queue, start):
    queue.enqueue("x")
    process = start(PROGRAMS / "exit_with_everything_held.py", path, stderr=subprocess.PIPE)
    assert process.communicate(timeout=30) == ("1\n", "")
    assert process.returncode == 0
    assert not queue.worker_is_alive()
    assert queue.lock("nightly").acquire()
    assert queue.claim().attempt == 2


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["drain", "drain4", "wait", "worker", "join"])
def test_what_is_called_at_exit_works_whenever_it_was_registered(path, queue, start, when, what):
    queue.enqueue("x")
    process = start(PROGRAMS / "call_at_exit.py", path, when, what, stderr=subprocess.PIPE)
    assert process.communicate(timeout=30) == ("1\n", "")
    assert process.returncode == 0


@pytest.mark.parametrize("concurrency", [1, 4])
def test_stop_from_another_thread_ends_a_loop_in_the_main_thread(path, queue, start, concurrency):
    process = start(
        PROGRAMS / "stop_from_another_thread.py",
        path,
        concurrency,
        stderr=subprocess.PIPE,
    )
    queue.enqueue("x")
    assert process.communicate(timeout=30) == (f"{DrainReport(done=1, stopped=True)!r}\n", "")
    assert process.returncode == 0


def test_a_queue_closed_under_its_loop_ends_it(path):
    queue = Queue(path)
    failures = []

    def work():
        try:
            queue.work(print)
        except Exception as error:
            failures.append(type(error).__name__)

    thread = threading.Thread(target=work)
    thread.start()
    while not any(loop.has_begun for loop in tuple(queue._loops)):
        time.sleep(0.005)
    queue.close()
    thread.join(30)
    assert failures == ["QueueClosedError"]


@pytest.fixture
def in_asyncio(path, queue, start, tmp_path):
    def in_asyncio(verb, kind):
        queue.enqueue_many(range(ITEMS))
        gate = tmp_path / "gate"
        return Loop(start(PROGRAMS / "loop_in_asyncio.py", path, verb, kind, gate, stderr=subprocess.PIPE), gate, 2)

    return in_asyncio


@pytest.mark.parametrize("kind", ["coroutine", "plain"])
@pytest.mark.parametrize("verb", ["drain", "work"])
def test_ctrl_c_in_asyncio_gives_everything_back_and_ends_the_program(queue, in_asyncio, verb, kind):
    loop = in_asyncio(verb, kind)
    loop.process.send_signal(signal.SIGINT)
    # The gate stays shut: also a plain handler, which nobody can end, keeps nobody from leaving.
    said, complained, code = loop.ends()
    assert said == ["in process: 0"]
    assert complained.rstrip().endswith("KeyboardInterrupt")
    assert code == -signal.SIGINT
    untouched(queue, ITEMS)


@pytest.mark.parametrize("kind", ["coroutine", "plain"])
def test_a_signal_handler_of_the_event_loop_may_stop_a_loop(queue, in_asyncio, kind):
    loop = in_asyncio("work", kind)
    loop.process.send_signal(signal.SIGTERM)
    loop.gate.touch()
    said, complained, code = loop.ends()
    done = queue.counts()["done"]
    assert (said[-1], complained, code) == (str(DrainReport(done=done, stopped=True)), "", 0)
    untouched(queue, ITEMS - done)
