"""Make the interpreter's last steps long enough for a thread to come back in them."""

import time


class Slow:
    """Keep one in a global name of the program."""

    def __del__(self, sleep=time.sleep):
        sleep(0.1)
