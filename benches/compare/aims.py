"""What the queue wants to reach beside the others, and whether a run showed it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from compare import backlog, contention, threads, throughput, wake
from compare.libraries import BASE, OURS, load
from compare.plan import SYNCS, behind, label
from compare.rounds import Key

if TYPE_CHECKING:
    from compare.rounds import Results


class Verdict(NamedTuple):
    what: str
    aim: str
    measured: float
    unit: str
    is_met: bool


@dataclass(frozen=True)
class Aim:
    """One number of ours: alone, over another library's, or over our own in another case."""

    what: str
    workload: str
    case: str
    metric: str
    least: float | None = None
    most: float | None = None
    over: str | None = None
    """A library, `BEST` or `CAREFUL`."""
    over_case: str | None = None
    is_worst: bool = False
    """Whether the worst round counts and not the median."""
    unit: str = "×"


BEST = "the best library"
CAREFUL = "every at-least-once library"

AIMS = (
    *(
        aim
        for size, put, batch, claim, both in (("100 bytes", 1.1, 1.1, 1.1, 1.0), ("5 KB", 1.2, 1.5, 1.4, 1.2))
        for aim in (
            Aim(f"put {size}, NORMAL", "put", label("NORMAL", size), throughput.RATE, least=put, over=BASE),
            Aim(f"put ×100, {size}, NORMAL", "batch", label("NORMAL", size), throughput.RATE, least=batch, over=BEST),
            Aim(f"put ×1,000, {size}, NORMAL", "batch1000", label("NORMAL", size), throughput.RATE, least=1, over=BASE),
            Aim(
                f"claim + finish {size}, NORMAL",
                "claim",
                label("NORMAL", size),
                throughput.RATE,
                least=claim,
                over=BASE,
            ),
            Aim(
                f"put + claim + finish {size}, NORMAL",
                "end-to-end",
                label("NORMAL", size),
                throughput.RATE,
                least=both,
                over=BASE,
            ),
            Aim(
                f"work, empty handler, {size}, NORMAL",
                "work",
                label("NORMAL", size),
                throughput.RATE,
                least=1.5,
                over=BASE,
            ),
            Aim(
                f"work, empty handler, {size}, NORMAL",
                "work",
                label("NORMAL", size),
                throughput.RATE,
                least=1.3,
                over="huey",
            ),
            Aim(f"put {size}, FULL", "put", label("FULL", size), throughput.RATE, least=1, over=BASE),
            Aim(f"put ×100, {size}, FULL", "batch", label("FULL", size), throughput.RATE, least=1, over=BASE),
            Aim(f"claim + finish {size}, FULL", "claim", label("FULL", size), throughput.RATE, least=1.5, over=BASE),
            Aim(f"4 processes that loop, {size}", "loops", size, throughput.RATE, least=1, over="huey"),
            Aim(
                f"4 processes that loop, {size}, largest / smallest",
                "loops",
                size,
                contention.UNFAIRNESS,
                most=2,
                unit="",
            ),
        )
    ),
    Aim("bytes of a pending item, 100 bytes", "space", "100 bytes", throughput.BYTES, most=1.5, over=BASE),
    Aim("claim + finish 100 KB, NORMAL", "claim", label("NORMAL", "100 KB"), throughput.RATE, least=2, over=BASE),
    Aim("claim + finish 100 KB, FULL", "claim", label("FULL", "100 KB"), throughput.RATE, least=2, over=BASE),
    *(
        Aim(
            f"one claim behind {behind(waiting, finished)}",
            "backlog",
            behind(waiting, finished),
            backlog.COST,
            most=1.25,
            over=OURS,
            over_case=behind(0, 0),
        )
        for waiting, finished in ((100_000, 0), (0, 100_000), (0, 1_000_000))
    ),
    *(
        aim
        for sync in SYNCS
        for aim in (
            Aim(f"4 processes, {sync}", "processes", sync, throughput.RATE, least=1.5, over=BASE),
            Aim(f"4 processes, {sync}, largest / smallest", "processes", sync, contention.UNFAIRNESS, most=2, unit=""),
            Aim(f"4 processes, {sync}, lost", "processes", sync, contention.LOST, most=0, is_worst=True, unit=""),
            Aim(f"4 processes, {sync}, doubled", "processes", sync, contention.DOUBLED, most=0, is_worst=True, unit=""),
        )
    ),
    Aim("8 threads that put, FULL, over one thread", "threads", "FULL", threads.GAIN, least=2.5),
    Aim("wake, p50", "wake", "", wake.P50, most=1, unit=" ms"),
    Aim("wake, p99", "wake", "", wake.P99, most=3, unit=" ms"),
    Aim("wake, idle CPU", "wake", "", wake.IDLE, most=1, unit=" ms per second"),
    Aim("put beside pure Python", "gil", label("NORMAL", "5 KB"), throughput.RATE, least=3, over=BASE),
)


def judge(results: Results, libraries: list[str]) -> list[Verdict]:
    """Every aim whose numbers were measured."""
    verdicts = []
    for aim in AIMS:
        measured = _measured(aim, results, libraries)
        if measured is not None:
            limit = f"≥ {aim.least:g}" if aim.least is not None else f"≤ {aim.most:g}"
            other = "our own claim behind nothing" if aim.over == OURS else aim.over
            text = f"{limit}{aim.unit}" + (f" {other}" if other else "")
            is_met = measured >= aim.least if aim.least is not None else measured <= (aim.most or 0)
            verdicts.append(Verdict(aim.what, text, measured, aim.unit, is_met))
    return verdicts


def _measured(aim: Aim, results: Results, libraries: list[str]) -> float | None:
    ours = Key(aim.workload, aim.case, OURS)
    if aim.over is None:
        values = results.values(ours, aim.metric)
        return max(values, default=None) if aim.is_worst else results.median(ours, aim.metric)
    others = [aim.over]
    if aim.over in (BEST, CAREFUL):
        others = [name for name in libraries if not name.startswith(OURS)]
    if aim.over == CAREFUL:
        # Membox's bare statements have no lease that brings a dead worker's item back; they have an aim of their own.
        others = [name for name in others if name != BASE and load(name).delivers_at_least_once]
    over_case = aim.case if aim.over_case is None else aim.over_case
    ratios = [results.ratio(ours, Key(aim.workload, over_case, name), aim.metric) for name in others]
    return min((ratio for ratio in ratios if ratio is not None), default=None)
