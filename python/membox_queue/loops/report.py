"""DrainReport: what a loop did."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, repr=False)
class DrainReport:
    """What a loop did.

    - `done`: items whose handler returned.
    - `moved`: items that went on to their next stage.
    - `failed`: items that ended as failed.
    - `postponed`: items that went back to pending for an automatic retry, or that sleep.
    - `blocked`: items that wait for others now.
    - `retried`: failed items that `retry_failed` returned to pending before the drain began.
    - `released`: items that were released without counting an attempt.
    - `lost`: items that another worker had reclaimed before their end could be recorded.
    - `cancelled`: items that were cancelled while their handler ran.
    - `unstored`: items that are done, and whose result could not be stored. The log says why.
    - `refused`: whether another live worker held the worker lease. Then all counts are zero.
    - `stopped`: whether the loop was asked to stop before it was done.
    """

    done: int = 0
    moved: int = 0
    failed: int = 0
    postponed: int = 0
    blocked: int = 0
    retried: int = 0
    released: int = 0
    lost: int = 0
    cancelled: int = 0
    unstored: int = 0
    refused: bool = False
    stopped: bool = False

    def __repr__(self) -> str:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return f"DrainReport({', '.join(f'{name}={value}' for name, value in values if value)})"
