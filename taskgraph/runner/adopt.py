"""Work that another runner left: whose it is, whether it lives, and how it ended.

While a runner lives, only it judges its attempts. When it is dead its lock is free, and whoever runs next takes over: ends
are read from the records of keepers, what lives is watched, and what vanished without a record is lost.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress

from taskgraph.core.retry import LOST
from taskgraph.core.task import Task
from taskgraph.executor.records import Exit, Record, held, system
from taskgraph.store import layout
from taskgraph.store.signs import runner_of

FOREIGN = "foreign"
ALIVE = "alive"
ORPHAN = "orphan"


class Survey:
    """Looks at attempts that this run did not start.

    Args:
        root: the ``.tasks`` folder.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._records: dict[str, Record] = {}

    def record(self, keeper: str) -> Record:
        """The record of a keeper, as far as it has been read."""
        if keeper not in self._records:
            self._records[keeper] = Record(layout.keeper_path(self.root, keeper))
        return self._records[keeper]

    def runner_lives(self, process: str) -> bool:
        """Whether the runner that started an attempt lives."""
        return held(layout.runner_path(self.root, runner_of(process)))

    def look(self, task_id: int, attempt: int, process: str) -> Exit | str:
        """What has become of an attempt whose runner may be gone.

        Returns:
            its end, or `FOREIGN` (its runner lives), `ALIVE` (its keeper lives) or `ORPHAN` (its keeper is gone, but
            something of it still lives).
        """
        record = self.record(process)
        if self.runner_lives(process):
            return FOREIGN
        # The order matters: a keeper writes an end down before it goes.
        alive = record.alive
        end = record.read().ended.get((task_id, attempt))
        if end is not None:
            return end
        if alive:
            return ALIVE
        if held(layout.log_path(self.root, task_id, attempt)):
            return ORPHAN
        return lost(task_id, attempt)

    def clean(self, tasks: Iterable[Task]) -> None:
        """Remove the files of runners and keepers that are gone and that no task needs any more."""
        needed, busy = set(), set()
        for task in tasks:
            if current := task.current:
                busy.add(f"{task.id}.{current['number']}")
                if "process" in current:
                    needed.add(current["process"])
                    needed.add(runner_of(current["process"]))
        with os.scandir(f"{self.root}/run") as entries:
            for entry in entries:
                stem, _, kind = entry.name.rpartition(".")
                if kind == "spare":
                    if not held(layout.runner_path(self.root, runner_of(stem))):
                        _remove(entry.path)
                elif kind in ("lock", "jsonl"):
                    if stem not in needed and not held(entry.path):
                        _remove(entry.path)
                elif kind in ("out", "in", "beat", "report", "tmp") and stem not in busy:
                    _remove(entry.path)


def lost(task_id: int, attempt: int) -> Exit:
    """The end of an attempt that vanished without a record."""
    return Exit(task_id, attempt, {"outcome": LOST}, (), time.time())


def age(record: Record, task_id: int, attempt: int) -> float:
    """Seconds since the first process of an attempt started, by the clock of its boot; 0.0 where that cannot be told."""
    process = record.started.get((task_id, attempt))
    if process is None or not process.ticks or process.system != system() or not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - process.ticks / os.sysconf("SC_CLK_TCK"))


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
