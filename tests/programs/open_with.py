"""Open a queue with a retry limit when told; write what became of it, and the limit that is stored."""

import sys

from membox_queue import Queue, SettingsConflictError

print("ready", flush=True)
sys.stdin.readline()
try:
    with Queue(sys.argv[1], max_retries=int(sys.argv[2])) as queue:
        print("opened", queue.options["max_retries"])
except SettingsConflictError as error:
    print("refused", error.stored)
