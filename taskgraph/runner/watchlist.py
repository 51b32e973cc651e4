"""The attempts that a run watches: its own and those it took over; which of them have ended, and which must.

Reads records and file times, signals processes; writes no task.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from taskgraph.core.graph import Event
from taskgraph.core.limits import Limits
from taskgraph.core.retry import INTERRUPTED, LOST, STALLED
from taskgraph.core.stall import Watch
from taskgraph.core.status import IN_PROGRESS
from taskgraph.core.task import Task
from taskgraph.executor.records import Exit, Record, held
from taskgraph.runner import adopt, jobs
from taskgraph.runner.watched import Watched
from taskgraph.store import layout, signs

LOOK: Final = 0.25
"""Seconds between looks at work that has a limit."""

Ended = tuple[Watched, Exit]


class Watchlist:
    """Watches attempts.

    Args:
        root: the ``.tasks`` folder.
        own: the name of the runner that watches.
        grace: seconds between asking a process to end and killing it.
        tell: hears of stalls and timeouts as they are found.

    Attributes:
        items: what is watched, by task.
        foreign: whether other living runners were at work at the last look.
    """

    def __init__(self, root: str, own: str, grace: float, tell: Callable[[Event], None]) -> None:
        self.root, self.own, self.grace, self.tell = root, own, grace, tell
        self.items: dict[int, Watched] = {}
        self.foreign = False
        self._survey = adopt.Survey(root, own)
        self._claims: dict[int, tuple[int, Watch]] = {}
        self._next_look = self._next_claims = 0.0
        self._mine: set[str] = set()

    def __len__(self) -> int:
        return len(self.items)

    def add(self, task_id: int, number: int, record: Record, limits: Limits, now: float) -> None:
        """Watch an attempt that this run starts."""
        self._mine.add(os.path.basename(record.path).removesuffix(".jsonl"))
        watch = Watch(now, limits.timeout, limits.stall_timeout)
        self._add(task_id, number, record, watch, own=True)

    def _add(self, task_id: int, number: int, record: Record, watch: Watch, *, own: bool) -> None:
        marks = jobs.marks(self.root, task_id, number)
        self.items[task_id] = Watched(task_id, number, record, marks, watch, own=own)

    def adopt(self, tasks: Iterable[Task], limits: Callable[[Task], Limits], now: float) -> None:
        """Take over what dead runners left among these tasks."""
        self.foreign = False
        for task in tasks:
            current = task.current if task.status == IN_PROGRESS else None
            if current is None or "process" not in current or task.id in self.items:
                continue
            process, number = current["process"], current["number"]
            # One of its own, of which it lost sight while the file could not be read, it takes back.
            if process not in self._mine and self._survey.look(task.id, number, process) == adopt.FOREIGN:
                self.foreign = True
                continue
            record, holds = self._survey.record(process), limits(task)
            watch = Watch(now, holds.timeout, holds.stall_timeout, adopt.age(record, task.id, number))
            self._add(task.id, number, record, watch, own=False)
            self._next_look = 0.0

    def clean(self, tasks: Iterable[Task]) -> None:
        """Remove what dead runners left behind and nobody needs any more."""
        self._survey.clean(tasks)

    def told(self, ends: Iterable[Exit]) -> list[Ended]:
        """The ends that a keeper told of, with what was watched; late ones are dropped."""
        return [(w, end) for end in ends if (w := self.items.get(end.task)) and w.attempt == end.attempt]

    def found(self, tasks: Mapping[int, Task], now: float) -> list[Ended]:
        """Look at what is watched: ends that no keeper tells of, and work that is over a limit and so is made to end."""
        ended: list[Ended] = []
        look = now >= self._next_look
        if look:
            self._next_look = now + LOOK
        for each in list(self.items.values()):
            each.press(now)
            if each.end is not None:
                if each.tree_is_gone():
                    ended.append((each, each.end))
            elif look or each.watch.left <= now - each.watch.seen:
                end = None if each.own else self._end_of_adopted(each, now)
                if end is not None:
                    ended.append((each, end))
                else:
                    self._look(each, tasks.get(each.task), now)
        return ended

    def _look(self, each: Watched, task: Task | None, now: float) -> None:
        watch = each.watch
        if task is None or each.outcome or not (watch.timeout or watch.stall_timeout):
            return
        watch.look(now, LOOK, signs.traces(self.root, each.task, each.attempt) if watch.stall_timeout else ())
        if watch.verdict:
            limit = watch.stall_timeout if watch.verdict == STALLED else watch.timeout
            self.tell({"event": watch.verdict, "task": each.task, "attempt": each.attempt, "limit": limit})
            each.stop(watch.verdict, now, self.grace)

    def lapsed(self, tasks: Iterable[Task], limits: Callable[[Task], Limits], now: float) -> list[tuple[int, int]]:
        """The claims, as task and attempt, whose holders have given no sign of life for longer than their limit."""
        if now < self._next_claims:
            return []
        self._next_claims = now + LOOK
        claims, lapsed = {}, []
        for task in tasks:
            current = task.current if task.status == IN_PROGRESS and task.owner else None
            if current is None or "process" in current:
                continue
            number = current["number"]
            known, watch = self._claims.get(task.id, (0, None))
            if watch is None or known != number:
                holds = limits(task)
                watch = Watch(now, 0, holds.stall_timeout or holds.lease)
            watch.look(now, LOOK, signs.traces(self.root, task.id, number))
            claims[task.id] = number, watch
            if watch.verdict:
                lapsed.append((task.id, number))
        self._claims = claims
        return lapsed

    def _end_of_adopted(self, each: Watched, now: float) -> Exit | None:
        alive = each.record.alive
        end = each.record.read().ended.get((each.task, each.attempt))
        if end is not None or alive:
            return end
        if held(layout.log_path(self.root, each.task, each.attempt)) or not each.tree_is_gone():
            # Its keeper is gone, so nobody will ever know how it ended: it must not run beside its successor. What
            # sends its output elsewhere holds no lock, and is known by its identity alone.
            each.stop(LOST, now, 0.0)
            return None
        return adopt.lost(each.task, each.attempt)

    def lose_keeper(self) -> None:
        """The keeper of this run was killed: from now on its records are read, as for any that was taken over."""
        for each in self.items.values():
            each.own = False
        self._next_look = 0.0

    def let_go(self, task_id: int, task: Task | None, now: float) -> None:
        """End the work of a task that has gone on without it: cancelled, skipped, held, completed or reopened by others."""
        each = self.items.get(task_id)
        if each is None:
            return
        current = task.current if task is not None and task.status == IN_PROGRESS else None
        if current is None or current["number"] != each.attempt:
            each.gone = True
            adopt.mark_ending(self.root, task_id, each.attempt, self.own)
            each.stop(INTERRUPTED, now, self.grace)

    def drop(self, task_id: int) -> None:
        """An attempt is over, and nothing is left of it."""
        each = self.items.pop(task_id, None)
        if each is not None and each.gone:
            adopt.unmark_ending(self.root, task_id, each.attempt)

    def stop_all(self, now: float) -> None:
        """Ask everything to end."""
        for each in self.items.values():
            each.stop(INTERRUPTED, now, self.grace)

    def kill_all(self, now: float) -> None:
        """Kill everything now."""
        for each in self.items.values():
            each.kill(now)

    def deadline(self) -> float:
        """The monotonic time of the next limit or kill; infinite where there is none."""
        return min(
            (each.deadline if each.outcome else each.watch.seen + each.watch.left for each in self.items.values()),
            default=float("inf"),
        )


def predecessor_lives(root: str, task: Task, floor: int) -> bool:
    """Whether something of the last attempt, which others ended or forgot, is still there: two copies never overlap.

    Args:
        root: the ``.tasks`` folder.
        task: the task.
        floor: the highest attempt that is known to have left a log.
    """
    last = task.attempts[-1] if task.attempts else None
    number = last["number"] if last is not None else 0
    if floor > number:
        return adopt.something_lives(root, task.id, floor, Record(""))
    if last is None or "process" not in last or "exitCode" in last or "signal" in last:
        return False
    record = Record(layout.keeper_path(root, last["process"])).read()
    return adopt.something_lives(root, task.id, number, record)
