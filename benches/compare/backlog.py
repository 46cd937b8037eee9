"""What one claim costs behind many rows that wait or are finished."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from compare import documents
from compare.adapter import BrokenError
from compare.throughput import check

if TYPE_CHECKING:
    from pathlib import Path

    from compare.adapter import Adapter

COST = "µs"


def claim_behind(library: type[Adapter], folder: Path, waiting: int, finished: int, claims: int) -> dict[str, float]:
    """Median microseconds of single claims. The folder is kept between rounds: filling it takes long."""
    if not (folder / library.file_name).exists():
        rows = (documents.make("small JSON", number) for number in range(waiting or finished))
        library.seed(folder, rows, finished=finished > 0)
    before = library.census(folder)
    costs = []
    with library(folder, "NORMAL") as queue:
        queue_tail = 0 if waiting else before.finished or 0
        if not waiting:
            for number in range(claims + 1):
                queue.put(documents.make("small JSON", queue_tail + number))
        receipts = []
        numbers = []
        for _ in range(claims + 1):
            started = time.perf_counter()
            claimed = queue.claim()
            costs.append(time.perf_counter() - started)
            if claimed is None:
                raise BrokenError("nothing to claim where items wait")
            receipts.append(claimed.receipt)
            numbers.append(documents.number_of(claimed.document))
        for receipt in receipts:
            queue.finish(receipt)
        if waiting:
            # As many as were taken, so that the next round stands behind as many.
            for number in range(claims + 1):
                queue.put(documents.make("small JSON", numbers[0] + waiting + number))
    if numbers != list(range(numbers[0], numbers[0] + claims + 1)):
        raise BrokenError("the claims did not come in the order of arrival")
    check(library, folder, waiting=before.waiting, finished=(before.finished or 0) + claims + 1)
    # The first claim reads the schema and prepares the statement; that is the price of opening, not of claiming.
    return {COST: statistics.median(costs[1:]) * 1e6}
