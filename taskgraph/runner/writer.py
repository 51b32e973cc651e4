"""What a run writes, and when: commands come first, files as soon as nothing else is to do.

In each locked step the history is written, every start of an attempt is promised in the lock file (see `store.promises`), and
what starts is handed over. The task files follow while commands run: at once if nothing has ended in the meantime; else the
ends are promised too, and written within `promises.DELAY` in any case. An edge that moves on a task which still waits for
others may be written even later, since it says nothing that its upstreams do not say. Knows nothing of processes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from taskgraph.core.graph import Graph
from taskgraph.core.status import IN_PROGRESS
from taskgraph.store import promises
from taskgraph.store.files import Store

_LATER: Final = 0.8
"""Seconds that an edge of a waiting task may be written later."""

_BATCH: Final = 50
"""How many of those are written in one step."""


class Writer:
    """Writes what a run changes.

    Args:
        store: where to.
        graph: the tasks of the run.
        by: who the events name.
    """

    def __init__(self, store: Store, graph: Graph, by: str) -> None:
        self.store, self.graph, self.by = store, graph, by
        self._promised: dict[int, tuple[float, bytes]] = {}
        self._edges: dict[int, float] = {}

    def commit(
        self,
        now: float,
        ended: Iterable[int],
        started: Sequence[int],
        hand_over: Callable[[], None],
        busy: Callable[[], bool],
    ) -> None:
        """Under the lock: put a step on record.

        Args:
            now: the monotonic clock.
            ended: the tasks of which an attempt ended in this step.
            started: the tasks of which an attempt started.
            hand_over: called when every start is on record.
            busy: whether something waits that is more urgent than writing files.

        Raises:
            StoreError: something cannot be written. What was started is on record even so.
        """
        graph = self.graph
        at_once = {event["task"] for event in graph.events if "task" in event}
        put_off = dict.fromkeys(ended)
        unpromised = [task_id for task_id in started if not self._promise(task_id, now)]
        at_once.difference_update(put_off, started)
        for task_id in graph.touched.difference(at_once, put_off, self._promised):
            if task_id in graph.dirty:
                self._edges.setdefault(task_id, now)
        at_once.update(self._overdue(now))
        graph.touched.clear()
        self.store.record(graph, self.by)
        self.store.promise(self._block())
        self._write(unpromised)
        hand_over()
        self._write(at_once)
        self._write_ends({**put_off, **dict.fromkeys(self._promised)}, now, busy)
        self.store.promise(self._block(), now=False)

    def _block(self) -> bytes:
        """All that is promised, as it stands in the lock file."""
        return b"".join([line for _, line in self._promised.values()])

    def _write_ends(self, ids: Iterable[int], now: float, busy: Callable[[], bool]) -> None:
        """Write the files of attempts that are over; once something is more urgent, promise the rest."""
        urgent = False
        for task_id in ids:
            task = self.graph.tasks.get(task_id)
            if task is not None and task.status == IN_PROGRESS and task_id in self._promised:
                continue
            if task_id in self.graph.faults:
                continue
            urgent = urgent or busy()
            if not urgent or not self._promise(task_id, now):
                self._write([task_id])

    def _promise(self, task_id: int, now: float) -> bool:
        """Promise what changed in a task; False where it cannot be, and so must be in its file first.

        A start that was promised before holds until the file is written.
        """
        task = self.graph.tasks.get(task_id)
        line = promises.line(task) if task is not None and task.stamp is not None else b""
        known = self._promised.get(task_id)
        if not line or len(line) > promises.LONGEST or (known is None and len(self._promised) >= promises.MOST):
            return False
        self._promised[task_id] = known[0] if known is not None else now, line
        return True

    def _overdue(self, now: float) -> list[int]:
        faults = self.graph.faults
        due = [i for i, (since, _) in self._promised.items() if now - since >= promises.DELAY and i not in faults]
        for task_id, since in itertools.islice(self._edges.items(), _BATCH):
            if now - since < _LATER:
                break
            due.append(task_id)
        return due

    def _write(self, ids: Iterable[int]) -> None:
        chosen = sorted(set(ids))
        if not chosen:
            return
        self.store.write(self.graph, [self.graph.tasks[i] for i in chosen if i in self.graph.dirty])
        for task_id in chosen:
            self._edges.pop(task_id, None)
            if task_id in self.graph.faults and task_id in self.graph.dirty:
                # It holds in the lock file until the task file can be written.
                self._promise(task_id, float("-inf"))
            else:
                self._promised.pop(task_id, None)

    def next_due(self) -> float:
        """The monotonic time at which something that was put off must be written; infinite where nothing is."""
        due = float("inf")
        if self._promised:
            faults = self.graph.faults
            since = [since for task_id, (since, _) in self._promised.items() if task_id not in faults]
            due = min(since, default=due) + promises.DELAY
        if self._edges:
            due = min(due, next(iter(self._edges.values())) + _LATER)
        return due

    def forget(self, task_id: int) -> None:
        """Its file was found to be ahead of what was put off."""
        self._promised.pop(task_id, None)
        self._edges.pop(task_id, None)

    def flush(self) -> None:
        """Under the lock: write everything that was put off."""
        self.store.record(self.graph, self.by)
        self._write([*self.graph.dirty, *self._promised])
        self.store.promise(b"")
