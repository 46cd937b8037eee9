"""The Python blocks of the README and of docs/ pass mypy and pyright, each page as one program."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from blocks import blocks_of
from test_docs import FILES, ROOT, word_of

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {
    "typeCheckingMode": "standard",
    "pythonVersion": "3.11",
    "reportMissingImports": "none",
    "reportMissingModuleSource": "none",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for each page with its program, its tests and its files; their lines are those of the page."""
    folder = tmp_path_factory.mktemp("pages")
    for page in FILES:
        name = "_".join(page.relative_to(ROOT).with_suffix("").parts).replace("-", "_")
        programs: dict[str, list[str]] = {}
        for block in blocks_of(page):
            if block.language == "python":
                word = word_of(block)
                own = {"pytest": f"test_line_{block.line}.py", "no-run": f"line_{block.line}.py"}
                program = programs.setdefault(own.get(word, word.removeprefix("file=") or "page.py"), [])
                program += [""] * (block.line - len(program)) + block.text.splitlines()
        for file, lines in programs.items():
            target = folder / name / file
            target.parent.mkdir(exist_ok=True)
            target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "pyrightconfig.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    return folder


def complaints(command: list[str], folder: Path) -> str:
    ended = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True)
    return "" if ended.returncode == 0 else f"{folder.name}: {ended.stdout}{ended.stderr}"


def test_mypy_accepts_every_page(folder):
    pytest.importorskip("mypy")
    command = ["mypy", "--check-untyped-defs", "--ignore-missing-imports", "--cache-dir", str(folder / "cache"), "."]
    pages = sorted({file.parent for file in folder.glob("*/*.py")})
    assert "".join(complaints(command, page) for page in pages) == ""


def test_pyright_accepts_every_page(folder):
    pytest.importorskip("pyright")
    assert complaints(["pyright", "--pythonpath", sys.executable], folder) == ""
