"""Every block of the README does what it says; `test_docs.py` runs the Python ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from blocks import blocks_of

ROOT = Path(__file__).parents[1]
BLOCKS = blocks_of(ROOT / "README.md")


def blocks(language: str) -> list[str]:
    return [block.text for block in BLOCKS if block.language == language]


def run(command: list[str], folder: Path) -> str:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_example_of_a_handover_runs(tmp_path: Path) -> None:
    out = run([sys.executable, str(ROOT / "examples" / "handoff.py")], tmp_path)
    assert "3 ingests pending — results may be incomplete" in out
    assert out.splitlines()[-1] == "  retro.md: 12 words"


def test_sql_blocks_are_valid_enqueues(tmp_path: Path) -> None:
    from membox_queue import Queue

    path = tmp_path / "memory.db"
    Queue(path).close()
    insert = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.close()"
    for statement in blocks("sql"):
        run([sys.executable, "-c", insert, str(path), statement], tmp_path)
    with Queue(path) as queue:
        assert queue.pending() == len(blocks("sql")) > 0


def test_the_shell_blocks_are_the_two_commands_that_ci_runs() -> None:
    lines = [line for text in blocks("sh") for line in text.splitlines()]
    assert [line for line in lines if line.startswith("python3 -m venv")] == lines
    assert sum("membox-queue demo" in line for line in lines) == 1
    assert sum("pytest" in line for line in lines) == 1


def test_every_other_block_is_a_picture() -> None:
    assert {block.language for block in BLOCKS} == {"python", "sql", "sh", "mermaid"}
