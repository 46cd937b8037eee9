"""The programs that tests start in other processes, each by the path of its file."""

from pathlib import Path

PROGRAMS = Path(__file__).parent
