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

    Attributes:
        closed: whether nothing more is taken in.
    """

    def __init__(self, graph: Graph, scope: set[int] | None = None) -> None:
        self.graph = graph
        self.scope = scope
        self.closed = False
        self._ready: list[tuple[int, int]] = []
        self._queued: set[int] = set()
        self._delayed: list[tuple[float, int]] = []
        # For each delayed task the notBefore it waits for, and the monotonic time at which that is over.
        self._due: dict[int, tuple[str, float]] = {}

    def offer(self, ids: Iterable[int], wall: float, now: float) -> None:
        """Look again at tasks that changed; one whose file cannot be read waits until it can.

        Args:
            ids: the tasks.
            wall: seconds since 1970.
            now: the monotonic clock, by which delays are waited for.
        """
        for task_id in () if self.closed else ids:
            task = self.graph.tasks.get(task_id)
            if task is None or task.status != PENDING or task_id in self._queued or task_id in self.graph.faults:
                continue
            if plainly_blocked(task) or not self.concerns(task):
                continue
            state = readiness(self.graph, task, wall)
            if state.state == "ready":
                self._queued.add(task_id)
                heapq.heappush(self._ready, (-task.priority, task_id))
            elif state.state == "delayed" and self._due.get(task_id, ("", 0.0))[0] != task.not_before:
                self._wait(task_id, task.not_before, now + state.seconds)

    def offer_later(self, task_id: int, when: float) -> None:
        """Look at a ready task again at a monotonic time."""
        self._wait(task_id, "", when)

    def _wait(self, task_id: int, not_before: str, when: float) -> None:
        self._due[task_id] = not_before, when
        heapq.heappush(self._delayed, (when, task_id))

    def concerns(self, task: Task) -> bool:
        """Whether the run is about a task and could start it."""
        return (self.scope is None or task.id in self.scope) and "command" in task.data

    def due(self, wall: float, now: float) -> None:
        """Look again at the tasks whose delay is over."""
        while self._delayed and self._delayed[0][0] <= now:
            when, task_id = heapq.heappop(self._delayed)
            task = self.graph.tasks.get(task_id)
            if not self._waits(task_id, when):
                continue
            del self._due[task_id]
            if task is None or task.status != PENDING or task_id in self._queued or task_id in self.graph.faults:
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
            when, task_id = self._delayed[0]
            task = self.graph.tasks.get(task_id)
            if task is not None and task.status == PENDING and self._waits(task_id, when):
                return when
            heapq.heappop(self._delayed)
            if self._waits(task_id, when):
                del self._due[task_id]
        return float("inf")

    def _waits(self, task_id: int, when: float) -> bool:
        """Whether an entry is the one that holds for its task, and no older one."""
        return task_id in self._due and self._due[task_id][1] == when


def plan(graph: Graph, scope: set[int] | None) -> list[int]:
    """The order in which a run would start what it could, were every attempt to succeed; for a dry run."""
    waits: dict[int, int] = {}
    start: list[tuple[int, int]] = []
    order: list[int] = []
    for task_id, task in graph.tasks.items():
        if task.status == PENDING and "command" in task.data and (scope is None or task_id in scope):
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


def claimable(graph: Graph, now: float, owner: str, worker: str) -> Task | None:
    """The best task to be claimed: reserved for the owner first, then by priority, then by id; None where none is ready.

    Args:
        graph: the tasks.
        now: seconds since 1970.
        owner: who claims.
        worker: tasks of this worker; else manual ones that are nobody else's.
    """
    ready = [
        task
        for task in graph.tasks.values()
        if task.status == PENDING
        and ((worker == task.worker or worker in task.workers) if worker else task.manual and task.owner in ("", owner))
        and readiness(graph, task, now).state == "ready"
    ]
    return min(ready, key=lambda task: (task.owner != owner, -task.priority, task.id), default=None)
