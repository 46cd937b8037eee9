"""Handlers of typed content, for workers and the command line."""

from dataclasses import dataclass

from membox_queue import Item


@dataclass
class Note:
    text: str


def plain(item):
    return type(item.content).__name__


def asking(item: Item[Note]):
    return type(item.content).__name__
