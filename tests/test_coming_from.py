"""The ways over from other libraries work with the real ones, where they are installed (`pip install '.[bench]'`)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[1] / "docs" / "coming-from").glob("*.md"))
BLOCK = re.compile(r"^<!-- needs: (\w+) -->\n```python no-run\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
BLOCKS = [(name, text) for page in PAGES for name, text in BLOCK.findall(page.read_text(encoding="utf-8"))]


def test_there_are_blocks_to_run():
    assert {name for name, _ in BLOCKS} == {"huey", "persistqueue", "litequeue", "dbos"}


@pytest.mark.parametrize(("package", "program"), BLOCKS, ids=[name for name, _ in BLOCKS])
def test_what_was_pending_there_is_pending_here(package, program, tmp_path):
    pytest.importorskip(package)
    command = [sys.executable, "-W", "error", "-c", program]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    said = re.findall(r"^ *print.*#\s+(.*)$", program, flags=re.MULTILINE)
    assert said, "the page says what comes out"
    for words in said:
        assert words in ended.stdout
