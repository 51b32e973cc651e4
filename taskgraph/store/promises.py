"""Starts and ends of attempts that a run has written into the lock file, before they are in the task files.

A task that runs for a millisecond would cost two replaced files, one for its start and one for its end, and the next command
would have to wait for both. So what happened is written down in the lock file first, and into the task file a moment later.
Whoever takes the lock in between carries it out; whoever reads lays it over the file. Knows which keys change, not what they
mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from taskgraph import lines
from taskgraph.core.fields import as_id
from taskgraph.core.status import PENDING
from taskgraph.core.task import MISSING, Task, normalise

DELAY: Final = 0.05
"""Seconds after which a change is in its task file."""

MOST: Final = 32
"""How many changes may be promised at a time; further ones are written at once."""

LONGEST: Final = 2048
"""Bytes that a promise may have; longer ones are written at once."""

_EDGES: Final = frozenset({"blockedBy", "unblockedBy", "blocks"})


class Promise(NamedTuple):
    """A change that is not yet in its task file.

    Attributes:
        task: the task.
        put: keys and their new values, ``attempts`` among them.
        cleared: keys that go.
        before: the status that the task had.
    """

    task: int
    put: dict[str, Any]
    cleared: list[str]
    before: str

    def lay_over(self, task: Task) -> bool:
        """Carry it out on a task as it was read; False if the file is as far already, or further.

        Of a task whose status somebody has changed in the meantime, only the record of its attempts is brought up.
        """
        if reaches(task, self.put["attempts"][-1]):
            return False
        whole = task.status == self.before
        for key, value in self.put.items():
            if whole or key == "attempts":
                task.put(key, value)
        if whole:
            task.clear(*self.cleared)
        return True

    def line(self) -> bytes:
        """It, as a JSON line."""
        return lines.dump(list(self))


def reaches(task: Task, attempt: Mapping[str, Any]) -> bool:
    """Whether what a task says of its attempts goes as far as one of them as somebody else knows it, or further."""
    for known in task.attempts:
        same = known["number"] == attempt["number"]
        if known["number"] > attempt["number"] or (same and ("outcome" in known or "outcome" not in attempt)):
            return True
    return False


def line(task: Task) -> bytes:
    """The promise that a changed task makes, as a JSON line; empty where no attempt changed."""
    changed = task.was or {}
    if "attempts" not in changed or not task.attempts:
        return b""
    keys = [key for key in changed if key not in _EDGES]
    put = {key: task.data[key] for key in keys if key in task.data}
    cleared = [key for key in keys if key not in task.data and changed[key] is not MISSING]
    return Promise(task.id, put, cleared, status_before(task)).line()


def status_before(task: Task) -> str:
    """The status of a task before it was changed; what a file does not say is pending."""
    before = (task.was or {}).get("status", task.status)
    return str(PENDING if before is MISSING else before)


def parse(block: bytes) -> Iterator[Promise]:
    """The promises in a block of lines; what makes no sense, as another version may have written it, is passed over."""
    for text in block.splitlines():
        try:
            task, put, cleared, before = lines.load(text)
            known = normalise(dict(put))
            promise = Promise(as_id(task), known, [str(key) for key in cleared], str(before))
        except (ValueError, TypeError):
            continue
        if promise.put.get("attempts"):
            yield promise
