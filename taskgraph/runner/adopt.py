"""Work that another runner left: whose it is, whether it lives, and how it ended.

While a runner lives, only it judges its attempts. When it is dead its lock is free, and whoever runs next takes over: ends
are read from the records of keepers, what lives is watched, and what vanished without a record is lost.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable
from contextlib import suppress

from taskgraph import lines, regular
from taskgraph.core.retry import LOST
from taskgraph.core.task import Task
from taskgraph.executor.records import Exit, Record, held, system
from taskgraph.runner.jobs import marks
from taskgraph.runner.presence import exists
from taskgraph.store import layout
from taskgraph.store.signs import runner_of

FOREIGN = "foreign"
ALIVE = "alive"
ORPHAN = "orphan"
_OLD = 60.0
_UNKNOWN = 5.0
"""Seconds in which a living runner makes itself known again whose file somebody removed."""


class Survey:
    """Looks at attempts that this run did not start.

    Args:
        root: the ``.tasks`` folder.
        own: the name of the runner that looks, which is no foreign one.
    """

    def __init__(self, root: str, own: str = "") -> None:
        self.root, self.own = root, own
        self._records: dict[str, Record] = {}
        self._unknown: dict[str, float] = {}

    def record(self, keeper: str) -> Record:
        """The record of a keeper, as far as it has been read."""
        if keeper not in self._records:
            self._records[keeper] = Record(layout.keeper_path(self.root, keeper))
        return self._records[keeper]

    def runner_lives(self, process: str) -> bool:
        """Whether the runner that started an attempt lives."""
        runner = runner_of(process)
        path = layout.runner_path(self.root, runner)
        if runner == self.own:
            return False
        if os.path.exists(path):
            self._unknown.pop(runner, None)
            return held(path)
        now = time.monotonic()
        return exists(runner) and now - self._unknown.setdefault(runner, now) < _UNKNOWN

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
        return ORPHAN if something_lives(self.root, task_id, attempt, record) else lost(task_id, attempt)

    def clean(self, tasks: Iterable[Task]) -> None:
        """Remove the files of runners and keepers that are gone and of attempts that are over.

        What this picture of the tasks does not know of, another runner may have begun since it was taken: that stays.
        """
        over = {task.id: _over(task) for task in tasks}
        with os.scandir(f"{self.root}/run") as entries:
            for entry in entries:
                stem, _, kind = entry.name.rpartition(".")
                if kind == "spare":
                    if not held(layout.runner_path(self.root, runner_of(stem))):
                        _remove(entry.path)
                elif kind == "lock":
                    _remove_unless_held(entry.path)
                elif kind == "jsonl":
                    if not held(entry.path) and all(_is_over(over, *key) for key in _keys(entry.path)):
                        _remove_unless_held(entry.path)
                elif kind in ("out", "in", "beat", "report", "ending"):
                    task_id, _, number = stem.partition(".")
                    if task_id.isdigit() and number.isdigit() and _is_over(over, int(task_id), int(number)):
                        _remove(entry.path)
                elif kind == "tmp" and _is_old(entry):
                    _remove(entry.path)


def something_lives(root: str, task_id: int, attempt: int, record: Record) -> bool:
    """Whether something of an attempt lives, even such as sends its output elsewhere and so holds no lock.

    Args:
        root: the ``.tasks`` folder.
        task_id: the task.
        attempt: the number of the attempt.
        record: what its keeper wrote down, as far as it is known.
    """
    if held(layout.log_path(root, task_id, attempt)) or _is_being_ended(root, task_id, attempt):
        return True
    # Imported here: it takes psutil, and only an attempt that others ended, or of which nobody knows, raises the question.
    from taskgraph.executor.trees import Tree

    return bool(Tree(record.started.get((task_id, attempt)), marks(root, task_id, attempt)).members())


def mark_ending(root: str, task_id: int, attempt: int, runner: str) -> None:
    """Let other runners know that one is ending an attempt, of which only it may know all processes."""
    with suppress(OSError), open(layout.run_path(root, task_id, attempt, "ending"), "w", encoding="utf-8") as file:
        file.write(runner)


def unmark_ending(root: str, task_id: int, attempt: int) -> None:
    """The attempt has ended."""
    _remove(layout.run_path(root, task_id, attempt, "ending"))


def _is_being_ended(root: str, task_id: int, attempt: int) -> bool:
    try:
        runner = regular.read(layout.run_path(root, task_id, attempt, "ending"), 200).decode("utf-8", "replace")
    except OSError:
        return False
    return "/" not in runner and "\0" not in runner and held(layout.runner_path(root, runner))


def _over(task: Task) -> tuple[int, int]:
    """The highest attempt of a task that is known, and the one that is under way or 0."""
    current = task.current
    return max((a["number"] for a in task.attempts), default=0), current["number"] if current else 0


def _is_over(over: dict[int, tuple[int, int]], task_id: int, number: int) -> bool:
    highest, current = over.get(task_id, (0, 0))
    return number <= highest and number != current


def _keys(path: str) -> set[tuple[int, int]]:
    """The attempts of which a record tells."""
    keys = set()
    with suppress(OSError), open(regular.open_file(path), "rb") as file:
        for line in file:
            with suppress(ValueError, KeyError):
                entry = lines.load(line)
                keys.add((entry["task"], entry["attempt"]))
    return keys


def _is_old(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return time.time() - entry.stat().st_mtime > _OLD
    return False


def lost(task_id: int, attempt: int) -> Exit:
    """The end of an attempt that vanished without a record."""
    return Exit(task_id, attempt, {"outcome": LOST}, (), time.time())


def age(record: Record, task_id: int, attempt: int) -> float:
    """Seconds since the first process of an attempt started, by the clock of its boot; 0.0 where that cannot be told."""
    process = record.started.get((task_id, attempt))
    if process is None or not process.ticks or process.system != system() or not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - process.ticks / os.sysconf("SC_CLK_TCK"))


def _remove_unless_held(path: str) -> None:
    """Remove a file that somebody may just have made and be about to lock: holding the lock, so that he finds out."""
    with suppress(OSError):
        fd = regular.open_file(path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(fd)


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
