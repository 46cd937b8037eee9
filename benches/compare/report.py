"""What was measured, as Markdown and as JSON."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from compare import aims
from compare.libraries import BASE, version
from compare.rounds import Key

if TYPE_CHECKING:
    from compare.adapter import Adapter
    from compare.plan import Case, Column, Workload
    from compare.rounds import Results


@dataclass(frozen=True)
class Run:
    """All that a report is made of."""

    workloads: list[Workload]
    libraries: dict[str, type[Adapter]]
    skipped: list[str]
    rounds: int
    results: Results


def machine() -> dict[str, Any]:
    return {
        "date": date.today().isoformat(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        "python": platform.python_version(),
    }


def markdown(run: Run) -> str:
    facts = machine()
    parts = [
        f"{facts['cores']} cores, {facts['system']}, Python {facts['python']}; {facts['date']}. Interleaved rounds: "
        f"{run.rounds}. Cells are medians, lowest to highest in brackets; × is the median of the ratios to `{BASE}` "
        "within the same round.",
        _libraries(run),
        *(_section(run, workload) for workload in run.workloads),
        _aims(run),
    ]
    return "\n\n".join(part for part in parts if part)


def as_json(run: Run) -> dict[str, Any]:
    return {
        "machine": machine(),
        "rounds": run.rounds,
        "libraries": {name: {"version": version(library), "notes": library.notes} for name, library in _each(run)},
        "skipped": run.skipped,
        "samples": [
            {**key._asdict(), "round": turn, "metrics": metrics}
            for key, turns in run.results.samples.items()
            for turn, metrics in turns.items()
        ],
        "unsupported": [{**key._asdict(), "why": why} for key, why in run.results.unsupported.items()],
        "broken": [{**key._asdict(), "why": why} for key, why in run.results.broken.items()],
        "aims": [verdict._asdict() for verdict in aims.judge(run.results, list(run.libraries))],
    }


def _each(run: Run) -> list[tuple[str, type[Adapter]]]:
    return list(run.libraries.items())


def _table(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _libraries(run: Run) -> str:
    rows = [[name, version(library), "; ".join(library.notes)] for name, library in _each(run)]
    return "\n\n".join([_table(["library", "version", "to know"], rows), *run.skipped])


def _section(run: Run, workload: Workload) -> str:
    cells = [(case, column) for case in workload.cases for column in workload.columns]
    heading = ["library", *(_heading(workload, case, column) for case, column in cells)]
    rows = [[name, *(_cell(run, workload, case, column, name) for case, column in cells)] for name in run.libraries]
    return "\n\n".join([f"### {workload.title}", workload.about, _table(heading, rows), *_footnotes(run, workload)])


def _heading(workload: Workload, case: Case, column: Column) -> str:
    if len(workload.columns) == 1:
        return case.label
    return f"{case.label}: {column.metric}" if case.label else column.metric


def _cell(run: Run, workload: Workload, case: Case, column: Column, name: str) -> str:
    key = Key(workload.name, case.label, name)
    if key in run.results.broken:
        return "broken"
    values = run.results.values(key, column.metric)
    middle = run.results.median(key, column.metric)
    if middle is None:
        return "–"
    text = f"{middle:,.{column.digits}f}"
    if min(values) != max(values):
        text += f" ({min(values):,.{column.digits}f}–{max(values):,.{column.digits}f})"
    if column.is_compared:
        ratio = run.results.ratio(key, key._replace(library=BASE), column.metric)
        text += "" if ratio is None else f" {ratio:.2f}×"
    return text


def _footnotes(run: Run, workload: Workload) -> list[str]:
    """Why a cell is empty, once for each library and reason."""
    reasons: dict[str, None] = {}
    for kind, reported in (("", run.results.unsupported), ("broken: ", run.results.broken)):
        for key, why in reported.items():
            if key.workload == workload.name:
                reasons[f"- {key.library}: {kind}{why}"] = None
    return ["\n".join(reasons)] if reasons else []


def _aims(run: Run) -> str:
    verdicts = aims.judge(run.results, list(run.libraries))
    if not verdicts:
        return ""
    rows = [[v.what, v.aim, f"{v.measured:.2f}{v.unit}", "yes" if v.is_met else "**no**"] for v in verdicts]
    return "\n\n".join(["### The aims", _table(["what", "aim", "measured", "met"], rows)])
