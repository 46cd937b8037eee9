"""Close every descriptor under an open queue, then go on: PATH."""

import os
import sys

from membox_queue import Queue, StorageError

queue = Queue(sys.argv[1])
queue.enqueue("first")
queue.counts()
os.closerange(3, 256)
own = [open(f"{sys.argv[1]}.{number}", "w+b", buffering=0) for number in range(40)]  # noqa: SIM115
for file in own:
    file.write(b"dear")
told = []
for _ in range(3):
    try:
        told.append(queue.enqueue("after"))
    except StorageError:
        told.append("refused")
print(told[0], all(os.pread(file.fileno(), 100_000, 0) == b"dear" for file in own), flush=True)
queue.close()
print(sum(answer != "refused" for answer in told), flush=True)
for file in own:
    file.write(b"!")
