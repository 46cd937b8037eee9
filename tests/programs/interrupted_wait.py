"""Wait three times, each until Ctrl-C, and print when each wait ended: ADDRESS CALL."""

import contextlib
import sys
import time

from prepared_waits import CALLS

call = CALLS[sys.argv[2]]
for _ in range(3):
    print("waiting", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        call()
    print(time.monotonic(), flush=True)
