"""An attempt that a run watches: its limits, and, once it must go, how far its ending has come.

Signals processes through `executor`; knows nothing of task files.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from typing import Final

from taskgraph.core.stall import Watch
from taskgraph.executor.records import Exit, Record

GRACE: Final = 5.0
"""Seconds between asking a tree to end and killing it."""

_AGAIN: Final = 0.5


class Watched:
    """One attempt under way.

    Args:
        task: the task.
        attempt: the number of the attempt.
        record: what its keeper writes down.
        marks: environment variables that only its processes carry together.
        watch: its observed age and silence.
        own: whether this run started it, so its end is told; else its record is read.

    Attributes:
        since: when it started, by the monotonic clock.
        outcome: why it is being ended, empty while it is not.
        stopped_at: when that began, in seconds since 1970.
        gone: whether its task has gone on without it, so its end changes nothing.
        end: how it ended, while the rest of its tree is still there.
    """

    def __init__(
        self, task: int, attempt: int, record: Record, marks: Mapping[str, str], watch: Watch, *, own: bool
    ) -> None:
        self.task, self.attempt = task, attempt
        self.record, self.marks, self.watch, self.own = record, marks, watch, own
        self.since = watch.seen - watch.age
        self.outcome = ""
        self.stopped_at = 0.0
        self.gone = False
        self.end: Exit | None = None
        self._kill_at = float("inf")
        self._killed = False

    def _signal(self, number: signal.Signals) -> int:
        # Imported here: it takes psutil, and most runs never have to end anything.
        from taskgraph.executor.trees import Tree

        first = self.record.read().started.get((self.task, self.attempt))
        return Tree(first, self.marks).send(number)

    def stop(self, outcome: str, now: float, grace: float = GRACE) -> None:
        """Ask the whole tree to end, once; it is killed after the grace."""
        if not self.outcome:
            self.outcome = outcome
            self._kill_at = now + grace
            self.stopped_at = time.time()
            if grace > 0:
                self._signal(signal.SIGTERM)

    def kill(self, now: float) -> None:
        """Kill what is left now."""
        self._kill_at = min(self._kill_at, now)

    def press(self, now: float) -> None:
        """Kill the tree if its grace is over; again and again until it is gone."""
        if self.outcome and now >= self._kill_at:
            self._signal(signal.SIGKILL)
            self._killed = True
            self._kill_at = now + _AGAIN

    def tree_is_gone(self) -> bool:
        """Whether nothing of an ended attempt is left; asked only of one that was made to end."""
        from taskgraph.executor.trees import Tree

        first = self.record.read().started.get((self.task, self.attempt))
        return not Tree(first, self.marks).members()

    @property
    def deadline(self) -> float:
        """The monotonic time at which it must be pressed."""
        return self._kill_at
