"""What a disk may hold after a power cut: a model of files, names and the changes no sync has reached yet."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator

HEAD = struct.Struct("<ciqq")
SECTORS = (512, 4096)
DIRECTORY = 1


@dataclass(frozen=True)
class Change:
    """One recorded change: W(rite), T(runcate), G(row), C(reate), U(nlink), S(ync), F(ailed sync), M(ark)."""

    what: str
    file: int
    offset: int
    data: bytes = b""

    @property
    def name(self) -> str:
        return Path(self.data.decode()).name

    def torn(self, kept: Iterable[int], sector: int) -> list[Change]:
        """Of a write: only these sectors of it."""
        parts = []
        for number in kept:
            # Sectors are counted on the disk, so the first one of a write may be short.
            start = max(0, (self.offset // sector + number) * sector - self.offset)
            end = (self.offset // sector + number + 1) * sector - self.offset
            parts.append(Change("W", self.file, self.offset + start, self.data[start:end]))
        return parts

    def sectors(self, sector: int) -> int:
        """How many sectors of the disk a write touches."""
        return (self.offset + len(self.data) - 1) // sector - self.offset // sector + 1


def read(record: bytes) -> list[Change]:
    """The changes that disk.c recorded."""
    changes, at = [], 0
    while at < len(record):
        what, file, offset, length = HEAD.unpack_from(record, at)
        at += HEAD.size
        changes.append(Change(what.decode(), file, offset, record[at : at + length]))
        at += length
    return changes


# Of every pending change, the parts of it that were kept.
Choice = list[list[Change]]


@dataclass
class Disk:
    """What surely is on the disk, and what may be."""

    files: dict[int, bytes] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)
    # Of the pending changes, those that a failed sync has passed over, and those that one after it has reached. The
    # system takes the former for written, so no sync will reach them; and they lie below the latter.
    passed: set[int] = field(default_factory=set)
    reached: set[int] = field(default_factory=set)
    # The shared memory: no connection of a later boot believes what it holds.
    ignored: set[int] = field(default_factory=set)

    def apply(self, change: Change) -> None:
        """Follow one change. A sync makes sure of the file's content, one of the directory of its names."""
        if change.what == "M":
            return
        if change.what == "C" and change.name.endswith("-shm"):
            self.ignored.add(change.file)
        if change.file in self.ignored:
            return
        places = set()
        if change.what in "SF":
            places = {place for place, other in enumerate(self.pending) if is_of(change.file, other)}
        if change.what == "F":
            self.passed |= places - self.reached
        elif change.what != "S":
            self.pending.append(change)
        elif self.passed:
            self.reached |= places - self.passed
        else:
            write_down((self.pending[place] for place in sorted(places)), self.files, self.names)
            self.pending = [other for place, other in enumerate(self.pending) if place not in places]

    def after(self, kept: Choice) -> dict[str, bytes]:
        """The files there are if these parts of the pending changes have reached the disk."""
        files, names = dict(self.files), dict(self.names)
        sure = ([change] if place in self.reached else kept[place] for place, change in enumerate(self.pending))
        write_down(itertools.chain.from_iterable(sure), files, names)
        return {name: files.get(number, b"") for name, number in names.items()}

    @property
    def all(self) -> Choice:
        """What a power cut keeps that comes late enough."""
        return [[change] for change in self.pending]

    def cuts(self, dice: random.Random, most: int) -> Iterator[Choice]:
        """Which pending changes a power cut may have kept: all, none, every prefix, all but one, torn ones, any."""
        everything = self.all
        yield everything
        places = range(len(everything))
        if len(everything) > most:
            places = sorted(dice.sample(places, most))
        for place in places:
            before, rest = everything[:place], everything[place + 1 :]
            none = [[] for _ in rest]
            yield [*before, [], *none]
            yield [*before, [], *rest]
            yield [[] for _ in before] + [everything[place], *none]
            if self.pending[place].what == "W":
                for parts in tears(self.pending[place], dice):
                    yield [*before, parts, *none]
                    yield [*before, parts, *rest]
        for _ in range(min(most, 2 ** len(everything))):
            yield [chance(change, dice) for change in self.pending]


def chance(change: Change, dice: random.Random) -> list[Change]:
    """A change, a part of it, or nothing."""
    if dice.random() < 0.5:
        return []
    return next(tears(change, dice)) if change.what == "W" and dice.random() < 0.3 else [change]


def is_of(file: int, change: Change) -> bool:
    """Whether a sync of this file or directory reaches a change."""
    if file == DIRECTORY:
        return change.what in "CU"
    return change.what in "WT" and change.file == file


def tears(change: Change, dice: random.Random) -> Iterator[list[Change]]:
    """A write of which only some sectors have arrived, or none although the file has grown."""
    for sector in dice.sample(SECTORS, len(SECTORS)):
        count = change.sectors(sector)
        yield change.torn(sorted(dice.sample(range(count), dice.randint(0, count))), sector)
        yield change.torn([0], sector)
        yield change.torn([count - 1], sector)
    yield [Change("G", change.file, change.offset + len(change.data))]


def write_down(changes: Iterable[Change], files: dict[int, bytes], names: dict[str, int]) -> None:
    touched: dict[int, bytearray] = {}
    for change in changes:
        if change.what == "C":
            names[change.name] = change.file
            continue
        if change.what == "U":
            if names.get(change.name) == change.file:
                del names[change.name]
            continue
        content = touched.setdefault(change.file, bytearray(files.get(change.file, b"")))
        if change.what == "T":
            content[:] = content[: change.offset].ljust(change.offset, b"\0")
        elif change.what == "G":
            content.extend(bytes(max(0, change.offset - len(content))))
        else:
            content.extend(bytes(max(0, change.offset - len(content))))
            content[change.offset : change.offset + len(change.data)] = change.data
    files.update({number: bytes(content) for number, content in touched.items()})
