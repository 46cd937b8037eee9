"""Claim an item and die with it: ADDRESS."""

import os
import signal
import sys

from membox_queue import Queue

Queue(sys.argv[1]).claim()
os.kill(os.getpid(), signal.SIGKILL)
