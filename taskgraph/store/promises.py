"""Starts that a runner has written into the lock file, before they are in the task files.

A task that runs for a millisecond would cost two replaced files, one for its start and one for its end. So a start is written
down in the lock file first, and into its task file a moment later, unless the task has ended by then. Whoever takes the lock
in between carries it out; whoever reads lays it over the file. Knows which keys change, not what they mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from taskgraph.core.task import MISSING, Task
from taskgraph.store.codec import line_json

DELAY: Final = 0.05
"""Seconds after which a start is in its task file."""

MOST: Final = 32
"""How many starts may be promised at a time; further ones are written at once."""

_EDGES: Final = frozenset({"blockedBy", "unblockedBy", "blocks"})


class Promise(NamedTuple):
    """A start that is not yet in its task file.

    Attributes:
        task: the task.
        stamp: of the version of the file that it is meant for.
        put: keys and their new values.
        cleared: keys that go.
    """

    task: int
    stamp: tuple[int, ...]
    put: dict[str, Any]
    cleared: list[str]

    def lay_over(self, task: Task) -> bool:
        """Carry it out on a task as it was read; False if the task knows of that attempt already."""
        number = self.put["attempts"][-1]["number"]
        if any(attempt["number"] == number for attempt in task.attempts):
            return False
        for key, value in self.put.items():
            task.put(key, value)
        task.clear(*self.cleared)
        return True


def line(task: Task) -> bytes:
    """The promise that a changed task makes, as a JSON line."""
    keys = [key for key in task.was or () if key not in _EDGES]
    put = {key: task.data[key] for key in keys if key in task.data}
    cleared = [key for key in keys if key not in task.data and (task.was or {})[key] is not MISSING]
    return line_json([task.id, task.stamp, put, cleared])


def parse(block: bytes) -> Iterator[Promise]:
    """The promises in a block of lines."""
    for text in block.splitlines():
        task, stamp, put, cleared = json.loads(text)
        yield Promise(task, tuple(stamp), put, cleared)


def block(tasks: Iterable[Task]) -> bytes:
    """The promises that changed tasks make."""
    return b"".join(map(line, tasks))
