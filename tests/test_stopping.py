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

ITEMS = 10

LOOP = """
import signal, sys, threading, time
from pathlib import Path
from membox_queue import Queue

path, verb, concurrency, grace, gate = sys.argv[1:]
queue = Queue(path)
numbers = (signal.SIGINT, signal.SIGTERM)
before = [signal.getsignal(number) for number in numbers]

def handler(item):
    print("handling\\n", end="", flush=True)
    while not Path(gate).exists():
        time.sleep(0.005)

def tell_when_it_stops():
    while not any(loop.has_begun and loop.native.stopped for loop in tuple(queue._loops)):
        time.sleep(0.005)
    print("stopping\\n", end="", flush=True)

threading.Thread(target=tell_when_it_stops, daemon=True).start()
try:
    report = getattr(queue, verb)(handler, concurrency=int(concurrency), grace=float(grace))
finally:
    is_restored = [signal.getsignal(number) for number in numbers] == before
    print(f"restored {is_restored}\\n", end="", flush=True)
print(f"{report}\\n", end="", flush=True)
"""


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
        process = start(LOOP, path, verb, concurrency, grace, gate, stderr=subprocess.PIPE)
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
        """
import sys, threading, time
from membox_queue import Queue
queue = Queue(sys.argv[1])
began, free = threading.Event(), threading.Event()
def handler(item):
    began.set()
    free.wait()
    return "late"
thread = threading.Thread(target=lambda: print(queue.work(handler, grace=0.01)))
thread.start()
began.wait()
queue.stop()
while queue.get(1).status != "pending":
    time.sleep(0.005)
item = queue.claim()
free.set()
thread.join()
print(queue.mark_done(item, result="new"), queue.get(1).result)
""",
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
        """
import os, signal, sys
from membox_queue import Queue
outer, inner = Queue(sys.argv[1]), Queue(sys.argv[1], "inner")
inner.enqueue_many(range(3))
def handler(item):
    report = inner.drain(lambda item: os.kill(os.getpid(), signal.SIGTERM))
    print(report.done, report.stopped)
report = outer.drain(handler)
print(report.done, report.stopped)
""",
        path,
    )
    assert process.communicate(timeout=30)[0].splitlines() == ["1 True", "1 True"]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_signal_to_a_child_of_a_handler_is_the_childs_own(path, queue, start, number, is_nested):
    program = """
import os, signal, sys, time
from membox_queue import Queue
number, is_nested = int(sys.argv[2]), sys.argv[3] == "True"
outer, inner = Queue(sys.argv[1]), Queue(sys.argv[1], "inner")
inner.enqueue("x")
def handler(item):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os.write(writing, b".")
        try:
            time.sleep(300)
        except KeyboardInterrupt:
            os._exit(number)
    os.read(reading, 1)
    os.kill(child, number)
    print(abs(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
print(outer.drain(lambda item: inner.drain(handler) and None if is_nested else handler(item)))
"""
    queue.enqueue("x")
    said = start(program, path, int(number), is_nested).communicate(timeout=30)[0].splitlines()
    assert said == [str(int(number)), repr(DrainReport(done=1))]


def test_a_child_of_a_handler_that_stops_the_queue_has_no_grace_that_could_end_it(path, queue, start):
    program = """
import os, sys, threading
from membox_queue import Queue
queue = Queue(sys.argv[1])
def handler(item):
    child = os.fork()
    if child == 0:
        queue.stop()
        os._exit(any(thread.name == "membox-queue-grace" for thread in threading.enumerate()))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(queue.drain(handler))
"""
    queue.enqueue("x")
    assert start(program, path).communicate(timeout=30)[0].splitlines() == ["0", repr(DrainReport(done=1))]


TWICE = """
import os, signal, sys, time
from membox_queue import Queue
outer, inner = Queue(sys.argv[1]), Queue(sys.argv[1], "inner")
inner.enqueue("x")
def handler(item):
    os.kill(os.getpid(), signal.SIGTERM)
    while not item.stopping:
        time.sleep(0.005)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(300)
outer.drain(lambda item: inner.drain(handler))
"""


def test_a_second_signal_during_a_drain_inside_a_handler_is_held_against_no_item(path, queue, start):
    queue.enqueue("x")
    process = start(TWICE, path, stderr=subprocess.PIPE)
    assert (process.communicate(timeout=30), process.returncode) == (("", ""), 128 + 15)
    untouched(queue, 1)
    with Queue(path, "inner") as inner:
        untouched(inner, 1)


NESTED = """
import sys, threading, time
from membox_queue import Queue
outer, inner = Queue(sys.argv[1]), Queue(sys.argv[1], "inner")
inner.enqueue("x")
def handler(item):
    if sys.argv[2] == "stop":
        outer.stop()
    print("handling\\n", end="", flush=True)
    while True:
        time.sleep(0.01)
def middle(item):
    inner.drain(handler, grace=300)
    print("went on after its grace", flush=True)
print(outer.drain(middle, grace=0.05), inner.counts()["pending"], flush=True)
"""


@pytest.mark.parametrize("how", ["stop", "signal"])
def test_the_grace_of_a_loop_is_over_also_inside_another_loop_with_a_longer_one(path, queue, start, how):
    queue.enqueue("x")
    process = start(NESTED, path, how, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "handling\n"
    if how == "signal":
        process.send_signal(signal.SIGTERM)
    said, complained = process.communicate(timeout=30)
    assert (said, complained) == (f"{DrainReport(released=1, stopped=True)} 1\n", "")
    untouched(queue, 1)


# Ctrl-C while a call waits in native code. The waits are told to go on for minutes.

WAITS = {
    "claim": "queue.claim(wait=300)",
    "claim_many": "queue.claim_many(3, wait=300)",
    "wait": "queue.wait(later, timeout=300)",
    "lock": "queue.lock('held', wait=300).acquire()",
    "enqueue": "full.enqueue('x', wait=300)",
    "work": "queue.work(print)",
    "work4": "queue.work(print, concurrency=4)",
    "drain": "queue.drain(print, linger=3600)",
    "drain4": "queue.drain(print, linger=3600, concurrency=4)",
}

PREPARE = """
import sys, threading, time
from membox_queue import Queue, QueueClosedError
path = sys.argv[1]
queue, other = Queue(path), Queue(path)
full = Queue(path, "full", max_pending=1)
full.enqueue("x")
later = queue.enqueue("later", delay=1800)
held = other.lock("held")
held.acquire()
"""

INTERRUPTED = (
    PREPARE
    + """
for _ in range(3):
    print("waiting", flush=True)
    try:
        CALL
    except KeyboardInterrupt:
        pass
    print(time.monotonic(), flush=True)
"""
)


def is_asleep(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.parametrize("call", WAITS)
def test_ctrl_c_ends_a_wait_in_native_code_at_once(path, start, until, call):
    process = start(INTERRUPTED.replace("CALL", WAITS[call]), path, stderr=subprocess.PIPE)
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

# What is left at the very end makes the interpreter's last steps long enough for a thread to come back in them.
SLOW_END = """
import time
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.1)
slow = Slow()
"""

EXIT = (
    PREPARE
    + SLOW_END
    + """
kind = sys.argv[2]
began = threading.Event()
def call():
    began.set()
    try:
        CALL
    except QueueClosedError:
        print("closed", flush=True)
threading.Thread(target=call, daemon=kind == "daemon").start()
began.wait()
time.sleep(0.05)
print("leaving", flush=True)
"""
)


@pytest.mark.parametrize("kind", ["daemon", "thread"])
@pytest.mark.parametrize("call", WAITS)
def test_an_interpreter_that_exits_during_a_wait_neither_hangs_nor_crashes(path, start, call, kind):
    process = start(EXIT.replace("CALL", WAITS[call]), path, kind, stderr=subprocess.PIPE)
    said, complained = process.communicate(timeout=30)
    assert (process.returncode, complained) == (0, "")
    assert said.splitlines()[0] == "leaving"


BUSY_EXITS = """
import itertools, sys, threading, time
from membox_queue import Queue
path, kind, verb = sys.argv[1:]
queue = Queue(path, durability="normal")
handled = itertools.count()
def handler(item):
    next(handled)
    queue.enqueue("and so on")
queue.enqueue("x")
calls = {
    "work": lambda: queue.work(handler),
    "work4": lambda: queue.work(handler, concurrency=4),
    "drain": lambda: queue.drain(handler),
}
threading.Thread(target=calls[verb], daemon=kind == "daemon").start()
while next(handled) < 20:
    time.sleep(0.005)
print("leaving", flush=True)
"""


@pytest.mark.parametrize("kind", ["daemon", "thread"])
@pytest.mark.parametrize("verb", ["work", "work4", "drain"])
def test_an_interpreter_that_exits_does_not_wait_for_work_that_never_ends(path, queue, start, verb, kind):
    process = start(BUSY_EXITS, path, kind, verb, stderr=subprocess.PIPE)
    said, complained = process.communicate(timeout=10)
    assert (process.returncode, said, complained) == (0, "leaving\n", "")
    queue.purge("done")
    assert queue.claim(wait=30) is not None


BUSY_FILE = (
    SLOW_END
    + """
import sys, threading
from membox_queue import Queue, QueueError
queue = Queue(sys.argv[1], busy_timeout=300)
print("open", flush=True)
input()
began = threading.Event()
def enqueue():
    began.set()
    try:
        queue.enqueue("x")
    except QueueError as error:
        print(type(error).__name__, flush=True)
threading.Thread(target=enqueue, daemon=sys.argv[2] == "daemon").start()
began.wait()
time.sleep(0.1)
print("leaving", flush=True)
"""
)


LATE = """
import ctypes, sys, threading
from membox_queue import Queue
queue = Queue(sys.argv[1], busy_timeout=300)
print("open", flush=True)
input()
# As a library that has much to tidy up: after the interpreter is gone, the process lives on for two seconds.
libc = ctypes.CDLL(None)
libc.__cxa_atexit(ctypes.cast(libc.usleep, ctypes.c_void_p), ctypes.c_void_p(2_000_000), None)
began = threading.Event()
threading.Thread(target=lambda: (began.set(), queue.enqueue("x")), daemon=True).start()
began.wait()
"""


def test_a_process_that_lives_on_when_its_interpreter_is_gone_does_not_crash(path, queue, start, writer):
    process = start(LATE, path, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "open\n"
    writer()
    assert process.communicate("\n", timeout=30) == ("", "")
    assert process.returncode == 0


@pytest.mark.parametrize("kind", ["daemon", "thread"])
def test_an_interpreter_that_exits_while_a_thread_waits_for_the_write_lock_does_not_crash(
    path, queue, start, writer, kind
):
    process = start(BUSY_FILE, path, kind, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "open\n"
    let_go = writer()
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "leaving\n"
    if kind == "thread":
        # A write that somebody asked for is waited for, as any thread is.
        let_go()
    said, complained = process.communicate(timeout=30)
    assert (process.returncode, said, complained) == (0, "", "")
    assert queue.pending() == (kind == "thread")


ASYNC_EXIT = """
import asyncio, math, sys
from membox_queue import AsyncQueue
queue = AsyncQueue(sys.argv[1])
async def handler(item): ...
async def main():
    waits = [queue.claim(wait=math.inf), queue.work(handler, concurrency=2), anext(aiter(queue))]
    main.tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.sleep(0.1)
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
print("leaving", flush=True)
if sys.argv[2] == "closed":
    for task in main.tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*main.tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
"""


@pytest.mark.parametrize("how", ["closed", "abandoned"])
def test_an_interpreter_that_exits_with_an_event_loop_under_way_does_not_hang(path, start, how):
    process = start(ASYNC_EXIT, path, how, stderr=subprocess.PIPE)
    said, complained = process.communicate(timeout=20)
    assert (process.returncode, said) == (0, "leaving\n")
    if how == "closed":
        assert complained == ""
    assert "Fatal" not in complained
    assert "panicked" not in complained


HELD_AT_EXIT = """
import sys
from membox_queue import Queue
queue = Queue(sys.argv[1])
item = queue.claim()
item.__enter__()
lock = queue.lock("nightly")
lock.acquire()
queue.acquire_worker_lease()
print(item.id, flush=True)
"""


def test_a_process_that_exits_with_everything_in_hand_leaves_nothing_held(path, queue, start):
    queue.enqueue("x")
    process = start(HELD_AT_EXIT, path, stderr=subprocess.PIPE)
    assert process.communicate(timeout=30) == ("1\n", "")
    assert process.returncode == 0
    assert not queue.worker_is_alive()
    assert queue.lock("nightly").acquire()
    assert queue.claim().attempt == 2


AT_EXIT = """
import atexit, sys, threading
path, when, what = sys.argv[1:]
calls = {
    "drain": lambda: queue.drain(lambda item: None).done,
    "drain4": lambda: queue.drain(lambda item: None, concurrency=4).done,
    "wait": lambda: queue.claim(wait=0.01).id,
    "worker": lambda: worker.stop() and 1,
    "join": lambda: (asked.set(), thread.join(), 1)[2],
}
def register():
    atexit.register(lambda: print(calls[what](), flush=True))
if when == "before":
    register()
from membox_queue import Queue, Worker
queue = Queue(path)
if when == "after":
    register()
if what == "worker":
    worker = Worker(path, {"other": print})
    worker.start()
if what == "join":
    asked = threading.Event()
    def enqueue():
        while not asked.is_set():
            other.enqueue("and so on")
    other = Queue(path, "other", durability="normal")
    thread = threading.Thread(target=enqueue, daemon=True)
    thread.start()
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["drain", "drain4", "wait", "worker", "join"])
def test_what_is_called_at_exit_works_whenever_it_was_registered(path, queue, start, when, what):
    queue.enqueue("x")
    process = start(AT_EXIT, path, when, what, stderr=subprocess.PIPE)
    assert process.communicate(timeout=30) == ("1\n", "")
    assert process.returncode == 0


@pytest.mark.parametrize("concurrency", [1, 4])
def test_stop_from_another_thread_ends_a_loop_in_the_main_thread(path, queue, start, concurrency):
    process = start(
        """
import sys, threading
from membox_queue import Queue
queue = Queue(sys.argv[1])
stopper = threading.Thread(target=queue.stop)
print(queue.work(lambda item: stopper.start(), concurrency=int(sys.argv[2])))
""",
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


IN_ASYNCIO = """
import asyncio, signal, sys, time
from pathlib import Path
from membox_queue import AsyncQueue

path, verb, kind, gate = sys.argv[1:]

async def coroutine(item):
    print("handling\\n", end="", flush=True)
    while not Path(gate).exists():
        await asyncio.sleep(0.005)

def plain(item):
    print("handling\\n", end="", flush=True)
    while not Path(gate).exists():
        time.sleep(0.005)

async def main():
    async with AsyncQueue(path) as queue:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queue.stop)
        try:
            print(await getattr(queue, verb)({"coroutine": coroutine, "plain": plain}[kind], concurrency=2), flush=True)
        except asyncio.CancelledError:
            print("in process:", (await queue.counts())["processing"], flush=True)
            raise

asyncio.run(main())
"""


@pytest.fixture
def in_asyncio(path, queue, start, tmp_path):
    def in_asyncio(verb, kind):
        queue.enqueue_many(range(ITEMS))
        gate = tmp_path / "gate"
        return Loop(start(IN_ASYNCIO, path, verb, kind, gate, stderr=subprocess.PIPE), gate, 2)

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
