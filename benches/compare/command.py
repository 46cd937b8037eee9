"""The command line: what to measure, and where the results go."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from compare import plot, report
from compare.libraries import MODULES, load_installed
from compare.plan import FULL_SCALE, QUICK_SCALE, workloads
from compare.rounds import run

if TYPE_CHECKING:
    from collections.abc import Callable

WORKLOADS = [workload.name for workload in workloads(QUICK_SCALE)]


def main() -> int:
    options = _parser().parse_args()
    scale = QUICK_SCALE if options.quick else FULL_SCALE
    if options.rounds:
        scale = replace(scale, rounds=options.rounds)
    chosen = [workload for workload in workloads(scale) if workload.name in (options.only or WORKLOADS)]
    libraries, skipped = load_installed([name for name in MODULES if name in (options.library or MODULES)])
    for message in skipped:
        print(message, file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        results = run(chosen, libraries, scale.rounds, Path(folder))
    done = report.Run(chosen, libraries, skipped, scale.rounds, results)
    print(report.markdown(done))
    if options.json:
        Path(options.json).write_text(json.dumps(report.as_json(done), indent=1, ensure_ascii=False) + "\n")
    if options.plot:
        plot.save(done, options.plot)
    return 1 if results.broken else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benches/compare.py", description="Measure queue libraries side by side.")
    parser.add_argument("--quick", action="store_true", help="less than a minute, 5 KB documents only")
    parser.add_argument("--rounds", type=int, help="how often everything is measured")
    parser.add_argument("--only", type=_names(WORKLOADS), help=f"of {', '.join(WORKLOADS)}; separated by commas")
    parser.add_argument("--library", type=_names(list(MODULES)), help=f"of {', '.join(MODULES)}; separated by commas")
    parser.add_argument("--json", metavar="FILE", help="write every measurement there")
    parser.add_argument("--plot", metavar="FILE.png", help="draw the main numbers there; needs matplotlib")
    parser.add_argument("--folder", help="where the queues are made; a disk, or FULL means nothing")
    return parser


def _names(known: list[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(known)}")
        return names

    return parse
