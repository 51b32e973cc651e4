"""Which tasks start next: the ready ones in order, kept up as tasks change, so that a tick costs nothing for the rest.

Pure: clocks are arguments; what holds a task back is asked of `rules.readiness`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from taskgraph.core.graph import Graph
from taskgraph.core.rules import plainly_blocked, readiness
from taskgraph.core.status import PENDING
from taskgraph.core.task import Task


class Frontier:
    """The tasks that a run may start, in the order in which it should.

    Args:
        graph: the tasks.
        scope: the ids that the run is about; None for all.
    """

    def __init__(self, graph: Graph, scope: set[int] | None = None) -> None:
        self.graph = graph
        self.scope = scope
        self._ready: list[tuple[int, int]] = []
        self._queued: set[int] = set()
        self._delayed: list[tuple[float, int]] = []

    def offer(self, ids: Iterable[int], wall: float, now: float) -> None:
        """Look again at tasks that changed.

        Args:
            ids: the tasks.
            wall: seconds since 1970.
            now: the monotonic clock, by which delays are waited for.
        """
        for task_id in ids:
            task = self.graph.tasks.get(task_id)
            if task is None or task.status != PENDING or task_id in self._queued:
                continue
            if plainly_blocked(task) or not self.concerns(task):
                continue
            state = readiness(self.graph, task, wall)
            if state.state == "ready":
                self._queued.add(task_id)
                heapq.heappush(self._ready, (-task.priority, task_id))
            elif state.state == "delayed":
                heapq.heappush(self._delayed, (now + state.seconds, task_id))

    def offer_later(self, task_id: int, when: float) -> None:
        """Look at a ready task again at a monotonic time."""
        heapq.heappush(self._delayed, (when, task_id))

    def concerns(self, task: Task) -> bool:
        """Whether the run is about a task and could start it."""
        return (self.scope is None or task.id in self.scope) and bool(task.data.get("command"))

    def due(self, wall: float, now: float) -> None:
        """Look again at the tasks whose delay is over."""
        while self._delayed and self._delayed[0][0] <= now:
            _, task_id = heapq.heappop(self._delayed)
            task = self.graph.tasks.get(task_id)
            if task is None or task.status != PENDING or task_id in self._queued:
                continue
            # The monotonic clock has waited long enough, whatever the wall clock says.
            if readiness(self.graph, task, wall).state in ("ready", "delayed") and self.concerns(task):
                self._queued.add(task_id)
                heapq.heappush(self._ready, (-task.priority, task_id))

    def pop(self) -> int | None:
        """The task to start next, or None; whoever starts it checks once more that it is ready."""
        while self._ready:
            _, task_id = heapq.heappop(self._ready)
            self._queued.discard(task_id)
            task = self.graph.tasks.get(task_id)
            if task is not None and task.status == PENDING and self.concerns(task):
                return task_id
        return None

    @property
    def ready(self) -> bool:
        """Whether something may be ready to start."""
        return bool(self._ready)

    def next_due(self) -> float:
        """The monotonic time at which a delay ends; infinite where nothing is delayed."""
        while self._delayed:
            task = self.graph.tasks.get(self._delayed[0][1])
            if task is not None and task.status == PENDING:
                return self._delayed[0][0]
            heapq.heappop(self._delayed)
        return float("inf")


def plan(graph: Graph, scope: set[int] | None) -> list[int]:
    """The order in which a run would start what it could, were every attempt to succeed; for a dry run."""
    waits: dict[int, int] = {}
    start: list[tuple[int, int]] = []
    order: list[int] = []
    for task_id, task in graph.tasks.items():
        if task.status == PENDING and task.data.get("command") and (scope is None or task_id in scope):
            waits[task_id] = len(task.blocked_by)
            if not task.blocked_by:
                start.append((-task.priority, task_id))
    heapq.heapify(start)
    while start:
        _, task_id = heapq.heappop(start)
        order.append(task_id)
        for down in graph.tasks[task_id].blocks:
            if down in waits:
                waits[down] -= 1
                if waits[down] == 0:
                    heapq.heappush(start, (-graph.tasks[down].priority, down))
    return order
