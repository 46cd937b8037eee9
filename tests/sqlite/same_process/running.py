"""Runs a scenario in a process of its own and looks at the file it left from another."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

LOOK = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30)
count = lambda table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
try:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    print(json.dumps({
        "items": count("ingest_queue"),
        "notes": count("notes") if "notes" in tables else 0,
        "integrity": connection.execute("PRAGMA integrity_check(1)").fetchone()[0],
    }))
except sqlite3.DatabaseError as error:
    print(json.dumps({"items": 0, "notes": 0, "integrity": str(error)}))
"""


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
    ended = subprocess.run([sys.executable, "-c", LOOK, str(path)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found
