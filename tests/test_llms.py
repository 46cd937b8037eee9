"""llms.txt is true: its program runs, and every name it mentions exists."""

import builtins
import keyword
import re
import subprocess
import sys
from pathlib import Path

import membox_queue
import pytest
from membox_queue import AsyncQueue, Item, Queue, Worker

TEXT = (Path(__file__).parents[1] / "llms.txt").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
SPANS = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL))
OWNERS = {"queue": Queue, "aqueue": AsyncQueue, "item": Item}
WORDS = {"cp", "ingest", "ingest_queue", "done", "failed", "cancelled", "status", "id"}


def test_its_blocks_are_one_program_that_runs(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(BLOCKS)], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("owner", OWNERS)
def test_every_verb_that_is_called_exists(owner):
    called = set(re.findall(rf"\b{owner}\.(\w+)", "\n".join([*BLOCKS, *SPANS])))
    assert called
    assert [name for name in called if not hasattr(OWNERS[owner], name)] == []


def test_every_verb_that_is_named_exists():
    named = {span for span in SPANS if re.fullmatch(r"[a-z_]+", span)}
    known = {name for kind in (Queue, Item, Worker) for name in dir(kind)} | set(dir(builtins)) | set(keyword.kwlist)
    assert {"claim_many", "prune"} <= named
    assert named - known - WORDS == set()


def test_every_class_that_is_named_is_public():
    named = {name for span in SPANS for name in re.findall(r"\b[A-Z][a-z]\w*\b", span)}
    assert {"Queue", "StaleClaimError"} <= named
    assert named - set(membox_queue.__all__) - set(dir(builtins)) == set()


def test_it_has_the_shape_that_readers_of_llms_txt_expect():
    lines = TEXT.splitlines()
    assert lines[0].startswith("# ")
    assert lines[2].startswith("> ")
    assert "## Docs" in lines
    links = TEXT.partition("## Docs")[2]
    assert re.findall(r"^- \[.+?\]\(.+?\)", links, flags=re.MULTILINE)
