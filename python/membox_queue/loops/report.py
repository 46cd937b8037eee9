"""DrainReport: what a loop did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What a loop did.

    `failed` items came to rest as failed, `postponed` ones went back for an automatic retry, `retried` ones were
    brought back by `retry_failed` before the drain began, `released` ones were given back uncounted. `lost` ones had
    been taken over by somebody else when their end was to be recorded, `cancelled` ones had been cancelled. `refused`
    means that another live worker held the lease; everything else is zero then. `stopped` means that the loop was asked
    to end before it was done.
    """

    done: int = 0
    failed: int = 0
    postponed: int = 0
    retried: int = 0
    released: int = 0
    lost: int = 0
    cancelled: int = 0
    refused: bool = False
    stopped: bool = False
