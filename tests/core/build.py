"""Small graphs for tests, written the short way."""

from __future__ import annotations

from typing import Any

from taskgraph.core.fields import parse_time
from taskgraph.core.flow import mirror
from taskgraph.core.graph import Graph
from taskgraph.core.limits import PLAIN, Limits, resolve
from taskgraph.core.task import Task, normalise

AT = "2026-05-01T08:00:00.000Z"
NOW = parse_time(AT)


def task(task_id: int, status: str = "pending", up: tuple[int, ...] = (), **values: Any) -> Task:
    """A task as if it had been read from a file; ``up`` are the tasks it waits for."""
    return Task(normalise({"id": task_id, "status": status, "blockedBy": list(up), **values}), stamp=(0, 0, task_id))


def graph_of(*tasks: Task) -> Graph:
    """The tasks with every edge on both sides and every settled blocker moved, but with no cascade computed."""
    graph = Graph()
    for each in tasks:
        graph.add(each)
    mirror(graph)
    settle(graph)
    return graph


def settle(graph: Graph) -> None:
    """Forget what changed so far, as a save does."""
    for each in graph.tasks.values():
        each.was = None
    graph.dirty.clear()
    graph.events.clear()
    graph.touched.clear()


def chain(length: int, **values: Any) -> Graph:
    """1 → 2 → … → length."""
    return graph_of(*(task(i, up=(i - 1,) if i > 1 else (), **values) for i in range(1, length + 1)))


def limits(**values: Any) -> Limits:
    """The limits of a task with these fields and no settings."""
    return resolve(task(1, **values), PLAIN)


def statuses(graph: Graph) -> dict[int, str]:
    """The status of every task."""
    return {each.id: each.status for each in graph.tasks.values()}
