"""Tries an installed wheel, with or without its extras: enqueue, drain, typed content, and a worker of its own."""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import membox_queue
from membox_queue import Queue


@dataclass
class Doc:
    """What is enqueued."""

    text: str


def main() -> None:
    """Run it all in a directory of its own."""
    package = Path(membox_queue.__file__).parent
    if os.environ.get("WITHOUT_RUST"):
        assert shutil.which("cargo") is None, "this is to be tried without Rust"
        assert "site-packages" in package.parts, "this is to be tried with what was installed"
    assert (package / "py.typed").exists()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "memory.db"
        with Queue(path, type=Doc) as queue:
            queue.enqueue_many([Doc("one two"), Doc("three")])
            report = queue.drain(lambda item: len(item.content.text.split()), concurrency=2)
            assert (report.done, report.failed) == (2, 0), report
            assert [item.result for item in queue.items()] == [2, 1]
            queue.enqueue(Doc("four"))
        (Path(folder) / "counting.py").write_text("def words(item): return len(item.content['text'].split())")
        command = [sys.executable, "-m", "membox_queue", "process", "counting:words", "--db", str(path)]
        found = {"PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, **found}).stdout
        assert said.startswith(b"1 done"), said
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(
        f"membox_queue {membox_queue.__version__} on Python {sys.version.split()[0]}, GIL {'on' if gil else 'off'}: ok"
    )


main()
