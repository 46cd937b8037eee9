"""The stored heartbeat of a lock."""

import sqlite3


def test_it_is_renewed_for_as_long_as_the_block_runs(queue, path, clock, until):
    own = sqlite3.connect(path)

    def heartbeat():
        return own.execute("SELECT value FROM membox_queue_meta WHERE key = 'lock:nightly'").fetchone()

    with queue.lock("nightly", ttl=0.3) as lock:
        for _ in range(3):
            before = heartbeat()
            clock.advance(0.25)
            until(lambda before=before: heartbeat() != before)
            assert not queue.lock("nightly").acquire()
        assert not lock.lost
    own.close()
