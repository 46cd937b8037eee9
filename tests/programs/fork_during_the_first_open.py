"""Fork while a thread opens the first queue of the process: PATH."""

import os
import sys
import threading

from membox_queue import Queue

thread = threading.Thread(target=lambda: Queue(sys.argv[1]).enqueue("x"))
thread.start()
pid = os.fork()
if pid == 0:
    Queue(sys.argv[1]).enqueue("y")
    os._exit(0)
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
