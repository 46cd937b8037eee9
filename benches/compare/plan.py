"""Which workloads there are, with which documents and how many of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from compare import backlog, contention, threads, throughput, wake

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from compare.adapter import Adapter, Sync
    from compare.documents import Size


@dataclass(frozen=True)
class Case:
    """One thing to measure; the label is its column."""

    label: str
    measure: Callable[[type[Adapter], Path], dict[str, float]]
    keeps_folder: bool = False
    """Whether the next round goes on with the same files."""


@dataclass(frozen=True)
class Column:
    """One metric of a case, and how to show it."""

    metric: str
    digits: int = 0
    is_compared: bool = False
    """Whether the ratio to the base library stands beside it."""


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    about: str
    cases: tuple[Case, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Scale:
    """How much is measured. A run of a case should take each library a few tenths of a second."""

    rounds: int
    sizes: tuple[Size, ...]
    counts: dict[tuple[Sync, Size], int]
    batched: dict[Size, int]
    backlogs: tuple[tuple[int, int], ...]
    claims: int
    contended: int
    looped: int
    contended_seconds: float
    contended_syncs: tuple[Sync, ...]
    threaded: dict[Sync, int]
    beside_seconds: float
    wakes: int
    idle_seconds: float


FULL_SCALE = Scale(
    rounds=3,
    sizes=("100 bytes", "5 KB", "100 KB"),
    counts={
        ("NORMAL", "100 bytes"): 1_500,
        ("NORMAL", "5 KB"): 1_500,
        ("NORMAL", "100 KB"): 150,
        ("FULL", "100 bytes"): 400,
        ("FULL", "5 KB"): 400,
        ("FULL", "100 KB"): 80,
    },
    batched={"100 bytes": 20_000, "5 KB": 3_000, "100 KB": 300},
    backlogs=((0, 0), (1_000, 0), (100_000, 0), (0, 100_000), (0, 1_000_000)),
    claims=20,
    contended=12_000,
    looped=60_000,
    contended_seconds=1.5,
    contended_syncs=("NORMAL", "FULL"),
    threaded={"NORMAL": 1_600, "FULL": 800},
    beside_seconds=1.0,
    wakes=100,
    idle_seconds=3.0,
)

# One round, without a spread: it shows that everything works, and the order of magnitude.
QUICK_SCALE = Scale(
    rounds=1,
    sizes=("100 bytes", "5 KB"),
    counts={
        ("NORMAL", "100 bytes"): 400,
        ("NORMAL", "5 KB"): 400,
        ("FULL", "100 bytes"): 100,
        ("FULL", "5 KB"): 100,
    },
    batched={"100 bytes": 1_000, "5 KB": 1_000},
    backlogs=((0, 0), (1_000, 0), (100_000, 0), (0, 100_000)),
    claims=10,
    contended=2_500,
    looped=10_000,
    contended_seconds=0.3,
    contended_syncs=("NORMAL",),
    threaded={"NORMAL": 320, "FULL": 160},
    beside_seconds=0.2,
    wakes=8,
    idle_seconds=0.4,
)

SYNCS: tuple[Sync, ...] = ("NORMAL", "FULL")


def label(sync: Sync, size: Size) -> str:
    return f"{sync}, {size}"


def behind(waiting: int, finished: int) -> str:
    if waiting:
        return f"{waiting:,} pending"
    return f"{finished:,} finished" if finished else "nothing"


def workloads(scale: Scale) -> list[Workload]:
    # Some libraries grow slower with every item, so the number of them belongs to the result.
    counted = "; ".join(f"{count:,} items at {label(sync, size)}" for (sync, size), count in scale.counts.items())
    rate = (Column(throughput.RATE, is_compared=True),)

    def by_size(measure: Callable[..., dict[str, float]]) -> tuple[Case, ...]:
        return tuple(
            Case(label(sync, size), partial(measure, sync=sync, size=size, count=scale.counts[sync, size]))
            for sync in SYNCS
            for size in scale.sizes
        )

    return [
        Workload("put", "Put", f"Items per second, one call each; {counted}.", by_size(throughput.put), rate),
        Workload(
            "batch",
            "Put in batches of 100",
            "Items per second, one hundred to a transaction; "
            + "; ".join(f"{count:,} items of {size}" for size, count in scale.batched.items())
            + ".",
            tuple(
                Case(
                    label(sync, size), partial(throughput.put_batches, sync=sync, size=size, count=scale.batched[size])
                )
                for sync in SYNCS
                for size in scale.sizes
            ),
            rate,
        ),
        Workload(
            "batch1000",
            "Put in batches of 1,000",
            "Items per second, one thousand to a transaction.",
            tuple(
                Case(
                    label("NORMAL", size),
                    partial(throughput.put_batches, sync="NORMAL", size=size, count=scale.batched[size], batch=1_000),
                )
                for size in scale.sizes
                if size != "100 KB"
            ),
            rate,
        ),
        Workload(
            "space",
            "Bytes on disk",
            "Bytes of the closed file for each of 10,000 waiting items of 100 bytes; lower is better.",
            (Case("100 bytes", partial(throughput.space, size="100 bytes", count=10_000)),),
            (Column(throughput.BYTES, is_compared=True),),
        ),
        Workload(
            "claim",
            "Claim + finish",
            f"Items per second out of a queue that was filled before; {counted}.",
            by_size(throughput.claim_and_finish),
            rate,
        ),
        Workload(
            "end-to-end",
            "End to end",
            f"Items per second, each put, claimed and finished before the next; {counted}.",
            by_size(throughput.end_to_end),
            rate,
        ),
        Workload(
            "drain",
            "Drain with an empty handler",
            f"Items per second; a loop of claim, handler, finish where the library has no drain; {counted}.",
            by_size(throughput.drain),
            rate,
        ),
        Workload(
            "work",
            "A worker with an empty handler",
            f"Items per second of the library's own worker, a plain loop where it has none; {counted}.",
            by_size(throughput.work),
            rate,
        ),
        Workload(
            "backlog",
            "One claim behind other rows",
            "Microseconds of one claim, small JSON, NORMAL; lower is better.",
            tuple(
                Case(
                    behind(waiting, finished),
                    partial(backlog.claim_behind, waiting=waiting, finished=finished, claims=scale.claims),
                    keeps_folder=True,
                )
                for waiting, finished in scale.backlogs
            ),
            (Column(backlog.COST),),
        ),
        Workload(
            "processes",
            f"{contention.PROCESSES} processes contending",
            f"Claim + finish of {scale.contended:,} documents of 5 KB, for {scale.contended_seconds:g} s at most, by "
            "processes that share a file. A lost item was neither delivered nor left waiting; a doubled one was "
            "delivered again although no worker had failed. A share of nothing counts as one item.",
            tuple(
                Case(
                    sync,
                    partial(
                        contention.contend,
                        sync=sync,
                        size="5 KB",
                        count=scale.contended,
                        seconds=scale.contended_seconds,
                    ),
                )
                for sync in scale.contended_syncs
            ),
            (
                *rate,
                Column(contention.UNFAIRNESS, digits=1),
                Column(contention.LOST),
                Column(contention.DOUBLED),
                Column(contention.BUSY),
            ),
        ),
        Workload(
            "loops",
            f"{contention.PROCESSES} processes that loop",
            f"The library's own workers for {scale.contended_seconds:g} s, by processes that share a file, NORMAL.",
            tuple(
                Case(
                    size,
                    partial(
                        contention.contend,
                        sync="NORMAL",
                        size=size,
                        count=scale.looped,
                        seconds=scale.contended_seconds,
                        loops=True,
                    ),
                )
                for size in scale.sizes
                if size != "100 KB"
            ),
            (
                *rate,
                Column(contention.UNFAIRNESS, digits=1),
                Column(contention.LOST),
                Column(contention.DOUBLED),
            ),
        ),
        Workload(
            "threads",
            f"{threads.THREADS} threads that put",
            "5 KB documents, the same number by one thread and by eight of one process.",
            tuple(
                Case(sync, partial(threads.put_from_threads, sync=sync, size="5 KB", count=scale.threaded[sync]))
                for sync in SYNCS
            ),
            (Column(threads.ONE), Column(threads.EIGHT, is_compared=True), Column(threads.GAIN, digits=2)),
        ),
        Workload(
            "gil",
            "Put beside a thread of pure Python",
            "5 KB documents per second, NORMAL, while another thread of the process computes; and the part of its own "
            "pace that this thread keeps.",
            (
                Case(
                    label("NORMAL", "5 KB"),
                    partial(
                        threads.put_beside_python, sync="NORMAL", size="5 KB", most=5_000, seconds=scale.beside_seconds
                    ),
                ),
            ),
            (*rate, Column(threads.PACE, digits=2)),
        ),
        Workload(
            "wake",
            "Wake across processes",
            "From the call of put in one process to the item in another that waits, NORMAL, small JSON; and the CPU "
            "time of a consumer that waits for nothing. Lower is better.",
            (Case("", partial(wake.wake, wakes=scale.wakes, idle_seconds=scale.idle_seconds)),),
            (Column(wake.P50, digits=2), Column(wake.P99, digits=2), Column(wake.IDLE, digits=2)),
        ),
    ]
