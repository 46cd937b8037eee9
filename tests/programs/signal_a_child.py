"""Send a signal to a child that a handler forked: ADDRESS SIGNAL IS_NESTED."""

import os
import signal
import sys
import time

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
            for _ in range(3000):  # in slices: a signal that comes just before a sleep does not end it
                time.sleep(0.1)
        except KeyboardInterrupt:
            os._exit(number)
    os.read(reading, 1)
    os.kill(child, number)
    print(abs(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))


print(outer.drain(lambda item: inner.drain(handler) and None if is_nested else handler(item)))
