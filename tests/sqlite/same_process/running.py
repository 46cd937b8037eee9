"""Runs a scenario in a process of its own and looks at the file it left from another."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from programs import PROGRAMS

HERE = Path(__file__).parent


@dataclass
class Left:
    """What a scenario said, and what a fresh process found."""

    said: dict[str, Any]
    found: dict[str, Any]
    stderr: str

    @property
    def is_whole(self) -> bool:
        """Everything acknowledged is there, once, and the file is sound."""
        counts = all(self.found[table] == self.said[table] for table in ("items", "notes") if table in self.said)
        return bool(self.said) and counts and self.found["integrity"] == "ok"


def run(program: str, name: str, path: Path, *options: str) -> Left:
    command = [sys.executable, str(HERE / f"{program}.py"), name, str(path), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    said = next((line for line in reversed(ended.stdout.splitlines()) if line.startswith("{")), "{}")
    return Left(said=json.loads(said), found=look(path), stderr=ended.stderr)


def look(path: Path) -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, PROGRAMS / "look_at_a_file.py", str(path)], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(ended.stdout)
    return found
