"""A task as it is shown: its file, its derived state, its last sign of life. Pure but for what it is given."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from taskgraph.core.fields import format_time
from taskgraph.core.graph import Graph
from taskgraph.core.rules import readiness, state
from taskgraph.core.status import HELD, IN_PROGRESS, PENDING
from taskgraph.core.task import Task

STATES: Final = (
    "held", "stalled", "in_progress", "ready", "delayed", "blocked", "failed", "cancelled", "skipped", "recovered",
    "completed",
)  # fmt: skip
"""Every state that is shown, what concerns a person first."""

COLOURS: Final = {
    "held": "magenta", "stalled": "red", "in_progress": "cyan", "ready": "blue", "delayed": "yellow", "failed": "red",
    "cancelled": "yellow", "completed": "green", "recovered": "green",
}  # fmt: skip


def as_json(graph: Graph, task: Task, now: float, vital: tuple[float, bool]) -> dict[str, Any]:
    """A task as JSON: what its file holds, with the derived ``state`` behind ``status``.

    Args:
        graph: the task and its direct upstreams.
        task: the task.
        now: seconds since 1970.
        vital: its last sign of life, in seconds since 1970, and whether that is older than its limit.
    """
    shown: dict[str, Any] = {}
    for key, value in task.data.items():
        shown[key] = value
        if key == "status":
            shown["state"] = state(graph, task, now, vital[1])
    shown.setdefault("state", state(graph, task, now, vital[1]))
    for key, default in (
        ("status", PENDING),
        ("description", ""),
        ("blockedBy", []),
        ("blocks", []),
        ("owner", ""),
        ("subject", ""),
    ):
        shown.setdefault(key, default)
    if task.status == IN_PROGRESS and vital[0]:
        shown["heartbeatAt"] = format_time(min(vital[0], now))
    return shown


def row(graph: Graph, task: Task, now: float, silent: bool) -> tuple[str, str, str, str, str]:
    """A task as a row: id, state, what it is, what it waits for, who has it."""
    word = state(graph, task, now, silent)
    what = f"{task.name}: {task.subject}" if task.name and task.subject else task.name or task.subject
    ready = readiness(graph, task, now)
    if ready.state == "blocked":
        waits = "← " + ", ".join(str(i) + ("?" if i in ready.missing else "") for i in ready.waits_for)
    elif ready.state == "delayed":
        waits = f"{ready.seconds:.0f} s"
    elif task.status == HELD or task.cause:
        waits = task.reason or ("← " + ", ".join(map(str, task.cause)) if task.cause else "")
    else:
        waits = task.reason
    if task.stale:
        waits = f"stale {waits}".strip()
    return str(task.id), word, what, waits, task.owner


def counts(states: list[str]) -> dict[str, int]:
    """How many tasks are in each state, in the order in which states are shown."""
    found = Counter(states)
    return {word: found[word] for word in STATES if found[word]}
