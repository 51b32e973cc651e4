"""The statuses, which may become which, and the one door through which a status changes.

Knows nothing of disks; a change is written into a `Task` and described by an event in the `Graph`.
"""

from __future__ import annotations

from typing import Any, Final

from taskgraph.core.graph import Graph
from taskgraph.core.task import Task
from taskgraph.errors import RefusedError

PENDING: Final = "pending"
IN_PROGRESS: Final = "in_progress"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
CANCELLED: Final = "cancelled"
HELD: Final = "held"

SETTLED: Final = frozenset({COMPLETED, FAILED, SKIPPED, CANCELLED})

LEGAL: Final[dict[str, frozenset[str]]] = {
    PENDING: frozenset({IN_PROGRESS, COMPLETED, FAILED, SKIPPED, CANCELLED, HELD}),
    IN_PROGRESS: frozenset({COMPLETED, FAILED, PENDING, SKIPPED, CANCELLED, HELD}),
    HELD: frozenset({PENDING, IN_PROGRESS, COMPLETED, FAILED, SKIPPED, CANCELLED}),
    COMPLETED: frozenset({PENDING, FAILED, SKIPPED, CANCELLED, HELD}),
    FAILED: frozenset({PENDING, COMPLETED, SKIPPED, CANCELLED}),
    SKIPPED: frozenset({PENDING, COMPLETED, FAILED, CANCELLED}),
    CANCELLED: frozenset({PENDING, COMPLETED, FAILED, SKIPPED}),
}
"""The one table of legal moves: from a status to the statuses it may become."""

_ENDING: Final = ("reason", "cause", "finishedAt", "notBefore", "waived")


def refuse(task: Task, to: str) -> RefusedError:
    """The fault of a move that the table does not have."""
    legal = ", ".join(sorted(LEGAL[task.status]))
    return RefusedError(
        f"{task.title} is {task.status} and cannot become {to}; from there it may become: {legal}",
        task=task.id, status=task.status, legal=sorted(LEGAL[task.status]),
    )  # fmt: skip


def move(
    graph: Graph, task: Task, to: str, event: str, at: str, note: dict[str, Any] | None = None, **values: Any
) -> None:
    """Change the status of a task: the only place that does.

    What belongs to the status that is left (reason, cause, finish, …) is cleared; ``values`` (by JSON names) are set and
    stand in the event.

    Args:
        graph: where the event is recorded.
        task: the task to change.
        to: its new status.
        event: the name of the event.
        at: the moment, ISO 8601.
        note: what stands in the event only.
        **values: fields to set with the status; None and empty ones are left out.

    Raises:
        RefusedError: the table has no such move.
    """
    if to not in LEGAL[task.status]:
        raise refuse(task, to)
    # An answer may be any value, also an empty one.
    given = {k: v for k, v in values.items() if v is not None and (k == "result" or v not in ("", []))}
    if to in SETTLED:
        given["finishedAt"] = at
    task.clear(*(key for key in _ENDING if key not in given))
    task.status = to
    for key, value in given.items():
        task.put(key, value)
    graph.touched.add(task.id)
    graph.record(event, task, at, status=to, **(note or {}), **given)
