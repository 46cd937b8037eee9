"""Count the descriptors of a hundred waits at once: ADDRESS."""

import contextlib
import os
import resource
import sys
import threading
import time

from membox_queue import Queue

resource.setrlimit(resource.RLIMIT_NOFILE, (330, 330))
queue = Queue(sys.argv[1])
ids = queue.enqueue_many(range(100))
ended = []
threads = [threading.Thread(target=lambda id=id: ended.append(queue.wait(id, timeout=60).id)) for id in ids]
for thread in threads:
    thread.start()


def inotify():
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return sum("inotify" in link for link in found), sum("eventfd" in link for link in found)


deadline = time.monotonic() + 30
while inotify() != (1, 100):
    assert time.monotonic() < deadline, inotify()
    time.sleep(0.01)
other = os.system(
    f"{sys.executable} -c 'import sys; from membox_queue import Queue; Queue(sys.argv[1]).drain(print)' "
    f"'{sys.argv[1]}' > /dev/null"
)
for thread in threads:
    thread.join(30)
print(other, sorted(ended) == ids, inotify()[1])
