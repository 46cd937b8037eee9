"""The committed reference is what its script makes of the stub and the classes, and names everything that is public."""

import re
import runpy
from pathlib import Path

import membox_queue
import pytest
from membox_queue import AsyncQueue, Queue

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "reference.md").read_text(encoding="utf-8")


def test_the_page_is_current():
    made = runpy.run_path(str(DOCS / "reference.py"))["render"]()
    assert made == PAGE, "run python docs/reference.py"


@pytest.mark.parametrize("name", membox_queue.__all__)
def test_every_public_name_stands_in_it(name):
    assert re.search(rf"^(## {name}$|\| `{name}` \||- `{name}`)", PAGE, flags=re.MULTILINE)


@pytest.mark.parametrize("kind", [Queue, AsyncQueue])
def test_every_verb_stands_in_it(kind):
    missing = [
        name
        for name in dir(kind)
        if not name.startswith("_")
        and f"### {kind.__name__}.{name}\n" not in PAGE
        and not (kind is AsyncQueue and f"[{name}](#queue{name})" in PAGE)
    ]
    assert missing == []
