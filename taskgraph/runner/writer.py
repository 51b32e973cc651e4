"""What a run writes, and when: commands come first, files as soon as nothing else is to do.

In each locked step the history is written, every start and end of an attempt is promised in the lock file (see
`store.promises`), and what starts is handed over. The task files follow while commands run: at once if nothing has ended in
the meantime, and within `promises.DELAY` in any case. An edge that moves on a task which still waits for others may be written
even later, since it says nothing that its upstreams do not say. Knows nothing of processes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
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
        self, now: float, attempts: Iterable[int], hand_over: Callable[[], None], busy: Callable[[], bool]
    ) -> None:
        """Under the lock: put a step on record.

        Args:
            now: the monotonic clock.
            attempts: the tasks whose attempts started or ended in this step.
            hand_over: called when everything is on record.
            busy: whether something waits that is more urgent than writing files.

        Raises:
            StoreError: something cannot be written. What was started is on record even so.
        """
        graph = self.graph
        at_once = {event["task"] for event in graph.events if "task" in event}
        unpromised = self._promise(now, attempts, at_once)
        for task_id in graph.touched:
            if task_id in graph.dirty and task_id not in at_once and task_id not in self._promised:
                self._edges.setdefault(task_id, now)
        at_once.update(self._overdue(now))
        graph.touched.clear()
        self.store.record(graph, self.by)
        self.store.promise(b"".join(line for _, line in self._promised.values()))
        self._write(unpromised)
        hand_over()
        self._write(at_once)
        for task_id in list(self._promised):
            if busy():
                break
            task = graph.tasks.get(task_id)
            if task is None or task.status != IN_PROGRESS:
                self._write([task_id])
        self.store.promise(b"".join(line for _, line in self._promised.values()), now=False)

    def _promise(self, now: float, attempts: Iterable[int], at_once: set[int]) -> list[int]:
        """Promise what can be promised; the rest stays to be written at once, and so does what would be too much.

        Returns:
            the tasks of which nothing is promised, so that they must be in their files before anything is handed over.
        """
        unpromised = []
        for task_id in attempts:
            task = self.graph.tasks.get(task_id)
            line = promises.line(task) if task is not None and task.stamp is not None else b""
            since, earlier = self._promised.pop(task_id, (now, b""))
            if line and len(line) <= promises.LONGEST:
                self._promised[task_id] = (now if task_id in at_once else since, line)
                at_once.discard(task_id)
            elif earlier:
                # The end is too long to be promised: the start that was promised holds until the file is written.
                self._promised[task_id] = since, earlier
                at_once.add(task_id)
            else:
                unpromised.append(task_id)
        surplus = len(self._promised) - promises.MOST
        if surplus > 0:
            at_once.update(itertools.islice(self._promised, surplus))
        return unpromised

    def _overdue(self, now: float) -> list[int]:
        due = [task_id for task_id, (since, _) in self._promised.items() if now - since >= promises.DELAY]
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
            self._promised.pop(task_id, None)
            self._edges.pop(task_id, None)

    def next_due(self) -> float:
        """The monotonic time at which something that was put off must be written; infinite where nothing is."""
        due = float("inf")
        if self._promised:
            due = min(since for since, _ in self._promised.values()) + promises.DELAY
        if self._edges:
            due = min(due, next(iter(self._edges.values())) + _LATER)
        return due

    def promised(self, task_id: int) -> bool:
        """Whether a change of the task is promised but not yet in its file."""
        return task_id in self._promised

    def forget(self, task_id: int) -> None:
        """Its file was found to be ahead of what was put off."""
        self._promised.pop(task_id, None)
        self._edges.pop(task_id, None)

    def flush(self) -> None:
        """Under the lock: write everything that was put off."""
        self.store.record(self.graph, self.by)
        self._write([*self.graph.dirty, *self._promised])
        self.store.promise(b"")
