"""Spawn a worker for a type that this program itself defines: ADDRESS."""

import sys
from dataclasses import dataclass

from membox_queue import Queue


@dataclass
class Doc:
    text: str


try:
    Queue(sys.argv[1], type=Doc).enqueue(Doc("x"), spawn="json:loads")
except ValueError as error:
    print(error)
