"""Runs the cases in rounds, the libraries taking turns, and keeps every measurement."""

from __future__ import annotations

import gc
import shutil
import statistics
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from compare.adapter import UnsupportedError

if TYPE_CHECKING:
    from pathlib import Path

    from compare.adapter import Adapter
    from compare.plan import Case, Workload


class Key(NamedTuple):
    workload: str
    case: str
    library: str


@dataclass
class Results:
    """By round, so that a ratio can be taken inside the round in which both sides were measured."""

    samples: dict[Key, dict[int, dict[str, float]]] = field(default_factory=dict)
    unsupported: dict[Key, str] = field(default_factory=dict)
    broken: dict[Key, str] = field(default_factory=dict)

    def values(self, key: Key, metric: str) -> list[float]:
        if key in self.broken:
            return []
        return [sample[metric] for sample in self.samples.get(key, {}).values()]

    def median(self, key: Key, metric: str) -> float | None:
        values = self.values(key, metric)
        return statistics.median(values) if values else None

    def ratio(self, key: Key, over: Key, metric: str) -> float | None:
        """The median of the ratios of each round; None unless both were measured in one."""
        if key in self.broken or over in self.broken:
            return None
        mine, theirs = self.samples.get(key, {}), self.samples.get(over, {})
        ratios = [mine[turn][metric] / theirs[turn][metric] for turn in mine.keys() & theirs.keys()]
        return statistics.median(ratios) if ratios else None


def run(workloads: list[Workload], libraries: dict[str, type[Adapter]], rounds: int, folder: Path) -> Results:
    results = Results()
    names = list(libraries)
    for turn in range(rounds):
        # Whoever comes first finds a quiet disk, so it is somebody else in every round.
        order = names[turn % len(names) :] + names[: turn % len(names)]
        for workload in workloads:
            print(f"round {turn + 1} of {rounds}: {workload.title}", file=sys.stderr, flush=True)
            for case in workload.cases:
                for name in order:
                    _measure(results, Key(workload.name, case.label, name), case, libraries[name], turn, folder)
    return results


def _measure(results: Results, key: Key, case: Case, library: type[Adapter], turn: int, folder: Path) -> None:
    if key in results.unsupported or key in results.broken:
        return
    place = folder / "-".join(key).replace(" ", "_").replace(",", "")
    place.mkdir(exist_ok=True)
    gc.collect()
    try:
        results.samples.setdefault(key, {})[turn] = case.measure(library, place)
    except UnsupportedError as reason:
        results.unsupported[key] = str(reason)
    except Exception as error:
        # A run of many minutes goes on without the broken adapter; its cells say so and the exit code too.
        results.broken[key] = f"{type(error).__name__}: {error}"
        print(f"  {key.library}, {key.case}: {results.broken[key]}", file=sys.stderr, flush=True)
    finally:
        if not case.keeps_folder:
            shutil.rmtree(place)
