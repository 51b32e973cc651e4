"""The working set of one step: tasks, edges, and the events of what changes.

A `Graph` may hold a whole store, or fetch single tasks as they are asked for; algorithms need not know which. Nothing here
recurses, so a chain of any length is walked safely. Knows nothing of disks or of what statuses mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from taskgraph.core.task import Task
from taskgraph.errors import StoreError

Event = dict[str, Any]
Fetch = Callable[[int], Task | None]


class Graph:
    """Tasks by id, with what was changed.

    Attributes:
        tasks: the tasks seen so far, by id.
        faults: for each id whose file cannot be read, why.
        events: what happened in this step, in order; ids and authors are added by the store.
        dirty: ids of tasks that were changed since they were read or last written.
        touched: ids whose status or edges changed since somebody last looked; whoever follows the graph empties it.

    Args:
        fetch: finds a task that is not yet in ``tasks``; without one, ``tasks`` is all there is.
    """

    def __init__(self, fetch: Fetch | None = None) -> None:
        self.tasks: dict[int, Task] = {}
        self.faults: dict[int, StoreError] = {}
        self.events: list[Event] = []
        self.dirty: set[int] = set()
        self.touched: set[int] = set()
        self._fetch = fetch
        self._absent: set[int] = set()

    def get(self, task_id: int) -> Task | None:
        """The task, or None where there is none that can be read."""
        task = self.tasks.get(task_id)
        if task is None and self._fetch is not None and task_id not in self._absent:
            task = self._fetch(task_id)
            if task is None:
                self._absent.add(task_id)
            else:
                self.add(task)
        return task

    def add(self, task: Task) -> None:
        """Put a task in, in place of one with the same id."""
        self.tasks[task.data["id"]] = task
        task.dirty = self.dirty
        if task.was is not None:
            self.dirty.add(task.id)
        self._absent.discard(task.id)
        self.faults.pop(task.id, None)

    def drop(self, task_id: int) -> None:
        """Forget a task."""
        self.tasks.pop(task_id, None)
        self.dirty.discard(task_id)
        self._absent.add(task_id)

    def record(self, event: str, task: Task | None, at: str, **values: Any) -> None:
        """Note an event for the history; a task is stamped with its time."""
        entry: Event = {"at": at, "event": event}
        if task is not None:
            entry["task"] = task.id
            task.put("updatedAt", at)
        entry.update(values)
        self.events.append(entry)

    def changed(self) -> list[Task]:
        """The tasks that were changed since they were read or last written."""
        return [self.tasks[task_id] for task_id in sorted(self.dirty)]

    def find(self, name: str) -> Task | None:
        """The task of that name; reads only what is loaded."""
        return next((task for task in self.tasks.values() if task.data.get("name") == name), None)

    def upstreams(self, task: Task) -> Iterator[tuple[int, Task | None]]:
        """Each direct upstream, with None where it is missing or cannot be read."""
        for up in task.upstream:
            yield up, self.get(up)

    def closure(self, roots: Iterable[int], *, down: bool) -> list[int]:
        """The ids reached from ``roots`` (included) along the edges, down or up, each once, nearest first."""
        seen = dict.fromkeys(roots)
        queue = list(seen)
        for task_id in queue:
            task = self.get(task_id)
            if task is None:
                continue
            for other in task.blocks if down else task.upstream:
                if other not in seen:
                    seen[other] = None
                    queue.append(other)
        return queue


def link(up: Task, down: Task, *, settled: bool) -> None:
    """Draw the edge ``up → down`` on both of its sides."""
    if down.id not in up.blocks:
        up.blocks = [*up.blocks, down.id]
    if up.id not in down.blocked_by and up.id not in down.unblocked_by:
        if settled:
            down.unblocked_by = [*down.unblocked_by, up.id]
        else:
            down.blocked_by = [*down.blocked_by, up.id]


def unlink(up_id: int, up: Task | None, down_id: int, down: Task | None) -> bool:
    """Take the edge ``up → down`` away on both sides, where they exist; False if there was none."""
    found = False
    if up is not None and down_id in up.blocks:
        up.blocks = [i for i in up.blocks if i != down_id]
        found = True
    if down is not None and up_id in down.blocked_by:
        down.blocked_by = [i for i in down.blocked_by if i != up_id]
        found = True
    if down is not None and up_id in down.unblocked_by:
        down.unblocked_by = [i for i in down.unblocked_by if i != up_id]
        found = True
    return found


def path(graph: Graph, start: int, goal: int) -> list[int] | None:
    """A shortest way from ``start`` down to ``goal``, both included, or None."""
    if start == goal:
        return [start]
    came: dict[int, int] = {start: 0}
    queue = [start]
    for here in queue:
        task = graph.get(here)
        for there in task.blocks if task is not None else ():
            if there in came:
                continue
            came[there] = here
            if there == goal:
                way = [there]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return way[::-1]
            queue.append(there)
    return None


def order(graph: Graph) -> tuple[list[int], list[int]]:
    """The ids in topological order, and those that lie on a cycle or behind one (Kahn's algorithm)."""
    waits = {i: sum(1 for up in task.upstream if up in graph.tasks) for i, task in graph.tasks.items()}
    queue = [i for i, count in waits.items() if count == 0]
    for here in queue:
        for there in graph.tasks[here].blocks:
            if there in waits:
                waits[there] -= 1
                if waits[there] == 0:
                    queue.append(there)
    done = set(queue)
    return queue, [i for i in graph.tasks if i not in done]


def cycles(graph: Graph) -> list[list[int]]:
    """One cycle for each knot of the graph, its first id again at the end, in the direction of the edges."""
    _, knotted = order(graph)
    left, found = set(knotted), []
    while left:
        here, trail = min(left), dict[int, int]()
        while here in left and here not in trail:
            trail[here] = len(trail)
            ups = [up for up in graph.tasks[here].upstream if up in left]
            if not ups:
                break
            here = min(ups)
        if here in trail and any(up in left for up in graph.tasks[here].upstream):
            ring = list(trail)[trail[here] :][::-1]
            first = ring.index(min(ring))
            ring = ring[first:] + ring[:first]
            found.append([*ring, ring[0]])
        left -= trail.keys()
    return found
