"""An attempt that a run watches: its limits, and, once it must go, how far its ending has come.

Signals processes through `executor`; knows nothing of task files.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from taskgraph.core.stall import Watch
from taskgraph.executor.records import Exit, Record

if TYPE_CHECKING:
    from taskgraph.executor.trees import Tree

GRACE: Final = 5.0
"""Seconds between asking a tree to end and killing it."""

_AGAIN: Final = 0.5
_ASK_AGAIN: Final = 0.1


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
        self._ask_at = float("inf")
        self._tree: Tree | None = None

    def tree(self) -> Tree:
        """Its processes; the same object each time, since it remembers which ones it has seen."""
        # Imported here: it takes psutil, and most runs never have to end anything.
        from taskgraph.executor.trees import Tree

        if self._tree is None:
            self._tree = Tree(None, self.marks)
        if self._tree.first is None:
            self._tree.first = self.record.read().started.get((self.task, self.attempt))
        return self._tree

    def stop(self, outcome: str, now: float, grace: float = GRACE) -> None:
        """Ask the whole tree to end, once; it is killed after the grace."""
        if not self.outcome:
            self.outcome = outcome
            self._kill_at = now + grace
            self.stopped_at = time.time()
            if grace > 0:
                self._ask(now)

    def _ask(self, now: float) -> None:
        """Ask it to end; one that its keeper has yet to start is asked a moment later."""
        self._ask_at = float("inf") if self.tree().send(signal.SIGTERM) else now + _ASK_AGAIN

    def kill(self, now: float) -> None:
        """Kill what is left now."""
        self._kill_at = min(self._kill_at, now)

    def press(self, now: float) -> None:
        """Kill the tree if its grace is over; again and again until it is gone."""
        if self.outcome and now >= self._kill_at:
            # Imported here, as in `tree`.
            from taskgraph.executor.trees import wake

            self.tree().send(signal.SIGKILL)
            wake(self.record)
            self._ask_at = float("inf")
            self._kill_at = now + _AGAIN
        elif now >= self._ask_at:
            self._ask(now)

    def tree_is_gone(self) -> bool:
        """Whether nothing of it is left; asked only of an attempt that was made to end or has lost its keeper."""
        return not self.tree().members()

    @property
    def deadline(self) -> float:
        """The monotonic time at which it must be pressed."""
        return min(self._kill_at, self._ask_at)
