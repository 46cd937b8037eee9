"""The progress that a loop shows or tells."""

import io

import pytest
from loops_in_threads import nothing
from membox_queue import (
    DrainReport,
    LoopEvent,
    RetryLater,
)


def test_a_progress_callable_is_told_what_happens_to_each_item(queue):
    queue.enqueue_many(["ok", "bad", "later"])
    events = []

    def handler(item):
        if item.content == "bad":
            raise LookupError
        if item.content == "later":
            raise RetryLater(60)

    queue.drain(handler, progress=events.append)
    assert all(isinstance(event, LoopEvent) for event in events)
    kinds = [(event.kind, event.item.content) for event in events]
    assert kinds == [
        ("claimed", "ok"),
        ("done", "ok"),
        ("claimed", "bad"),
        ("failed", "bad"),
        ("claimed", "later"),
        ("postponed", "later"),
    ]


def test_what_a_progress_callable_raises_is_logged_and_goes_no_further(queue, caplog):
    queue.enqueue("x")

    def progress(event):
        raise RuntimeError("no terminal")

    assert queue.drain(nothing, progress=progress) == DrainReport(done=1)
    assert "no terminal" in caplog.text


def test_progress_true_is_silent_where_there_is_no_terminal(queue, capfd):
    queue.enqueue("x")
    assert queue.drain(nothing, progress=True) == DrainReport(done=1)
    assert capfd.readouterr() == ("", "")


def test_progress_true_does_no_harm_where_there_is_no_standard_error(queue, monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert queue.drain(nothing, progress=True) == DrainReport()


# The thread that redraws the bar may end by it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_terminal_that_is_gone_does_not_end_the_work(queue, monkeypatch):
    class Gone(io.StringIO):
        is_gone = False

        def isatty(self):
            return True

        def write(self, text):
            if self.is_gone:
                raise OSError(5, "Input/output error")
            return super().write(text)

    terminal = Gone()
    monkeypatch.setattr("sys.stderr", terminal)
    queue.enqueue_many(range(3))

    def handler(item):
        terminal.is_gone = True
        if item.id == 2:
            raise LookupError("said above the bar")

    assert queue.drain(handler, progress=True) == DrainReport(done=2, failed=1)
