"""The picture for the README: the main numbers as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compare import backlog, throughput
from compare.libraries import OURS
from compare.plan import behind, label
from compare.rounds import Key

if TYPE_CHECKING:
    from compare.report import Run

BOTH = (label("NORMAL", "5 KB"), label("FULL", "5 KB"))
ROWS = (behind(100_000, 0), behind(0, 100_000))
PANELS = (
    ("put, 5 KB", "items per second", "put", throughput.RATE, BOTH),
    ("claim + finish, 5 KB", "items per second", "claim", throughput.RATE, BOTH),
    ("4 processes, claim + finish, 5 KB", "items per second", "processes", throughput.RATE, ("NORMAL", "FULL")),
    ("one claim behind …", "µs, logarithmic; lower is better", "backlog", backlog.COST, ROWS),
)
OUR_COLOURS = ("#c2410c", "#fdba74")
THEIR_COLOURS = ("#475569", "#cbd5e1")


def save(run: Run, path: str) -> None:
    """Draw the panels. Raises ImportError when matplotlib is not installed."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    figure = Figure(figsize=(11, 6.5), layout="constrained")
    for axes, (title, unit, workload, metric, cases) in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
        if all(measured.name != workload for measured in run.workloads):
            axes.set_visible(False)
            continue
        names = list(reversed(run.libraries))
        for index, case in enumerate(cases):
            medians = [run.results.median(Key(workload, case, name), metric) or 0 for name in names]
            colours = [(OUR_COLOURS if name == OURS else THEIR_COLOURS)[index] for name in names]
            places = [place + 0.2 - 0.4 * index for place in range(len(names))]
            bars = axes.barh(places, medians, height=0.38, color=colours)
            texts = [f"{median:,.0f}" if median else "" for median in medians]
            axes.bar_label(bars, texts, padding=3, fontsize=7)
        axes.set_yticks(range(len(names)), names)
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xlabel(unit, fontsize=8)
        if workload == "backlog":
            axes.set_xscale("log")
        axes.margins(x=0.15)
        axes.spines[["top", "right"]].set_visible(False)
        shades = [Patch(color=colour) for colour in THEIR_COLOURS]
        names_of_cases = [case.removesuffix(", 5 KB") for case in cases]
        # Above the bars: inside, it would cover the number of the longest one.
        axes.legend(
            shades, names_of_cases, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize=7, frameon=False
        )
    figure.savefig(path, dpi=150)
