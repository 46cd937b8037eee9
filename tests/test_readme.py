"""Every block of the README does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


def run(command: list[str], folder: Path) -> str:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.parametrize("program", blocks("python"), ids=lambda text: text.strip().splitlines()[-1][:40])
def test_every_python_block_runs(tmp_path: Path, program: str) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "handoff.md").write_text("hand this over", encoding="utf-8")
    run([sys.executable, "-c", program], tmp_path)


def test_the_main_job_runs(tmp_path: Path) -> None:
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
    assert sum("examples/handoff.py" in line for line in lines) == 1
    assert sum("pytest" in line for line in lines) == 1


def test_every_other_block_is_a_picture() -> None:
    assert {name for name, _ in BLOCKS} == {"python", "sql", "sh", "mermaid"}
