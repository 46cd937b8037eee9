"""Every Python block of the README and of docs/ runs.

The blocks of a file are one program: they run in their order, in one process and one empty directory that has a
`notes/handoff.md`. Words after the language say otherwise:

    ```python pytest          a test file of its own, run by pytest after the program, in the same directory
    ```python file=tasks.py   is written there before the program runs, for others to import
    ```python no-run          is only compiled
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import Block, blocks_of
from programs import PROGRAMS

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def run(command: list[str], folder: Path, given: str = "") -> None:
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    ended = subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def word_of(block: Block) -> str:
    """What the block says about itself; there is one way to run it."""
    assert len(block.words) <= 1, f"line {block.line}: {block.words}"
    return block.words[0] if block.words else ""


def run_file(path: Path, folder: Path) -> None:
    program, tests = [], []
    for block in blocks_of(path):
        if block.language != "python":
            continue
        word = word_of(block)
        if word == "":
            program.append((block.line, block.text))
        elif word == "pytest":
            tests.append(f"test_line_{block.line}.py")
            (folder / tests[-1]).write_text(block.text, encoding="utf-8")
        elif word.startswith("file="):
            (folder / word.removeprefix("file=")).write_text(block.text, encoding="utf-8")
        else:
            assert word == "no-run", f"{path.name}:{block.line}: what is {word!r}?"
            compile(block.text, str(path), "exec")
    if program:
        run([sys.executable, PROGRAMS / "run_blocks.py", str(path)], folder, json.dumps(program))
    if tests:
        run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", *tests], folder)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "folder"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "handoff.md").write_text("hand this over", encoding="utf-8")
    return folder


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_python_block_runs(path, folder):
    run_file(path, folder)


WORKS = """
```python file=tasks.py
def double(number):
    return 2 * number
```

```python
from tasks import double
doubled = double(2)
```

text, and then the same program

```python
assert doubled == 4
```

```python pytest
from tasks import double
def test_it():
    assert double(3) == 6
```

```python no-run
raise SystemExit("never")
```

```sh
false
```
"""


def test_blocks_are_one_program_with_its_files_and_tests(folder, tmp_path):
    (tmp_path / "guide.md").write_text(WORKS, encoding="utf-8")
    run_file(tmp_path / "guide.md", folder)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("doubled == 4", "doubled == 5", r"guide\.md\", line 15"),
        ("double(3) == 6", "double(3) == 7", r"1 failed"),
        ('raise SystemExit("never")', "raise SystemExit(", r"never closed"),
        ("python no-run", "python norun", r"what is 'norun'"),
        ("python pytest", "python pytest no-run", r"line 18"),
        ("```sh\nfalse\n```", "```sh\nfalse", r"block of line 28 is never closed"),
    ],
)
def test_a_block_that_does_not_hold_is_told(folder, tmp_path, before, after, says):
    assert before in WORKS
    (tmp_path / "guide.md").write_text(WORKS.replace(before, after), encoding="utf-8")
    with pytest.raises((AssertionError, SyntaxError), match=says):
        run_file(tmp_path / "guide.md", folder)
