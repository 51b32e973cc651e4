"""What a run came to: counts, failures, what waits and for whom, and the exit code. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from taskgraph.core.explain import roots
from taskgraph.core.graph import Graph
from taskgraph.core.rules import recovered
from taskgraph.core.status import CANCELLED, FAILED, SETTLED
from taskgraph.core.task import Task
from taskgraph.errors import EXIT_FAILED, EXIT_OK, EXIT_STORE, EXIT_WAITING


class Outcome(NamedTuple):
    """What a run came to.

    Attributes:
        exit_code: as the table of exit codes says, signals included.
        counts: how many tasks of its scope have each status; ``recovered`` is counted besides.
        failed: the ids that failed, the first one to fail first.
        waiting: the ids that have not settled.
        faults: for each file that cannot be read, why.
        attempts: how many attempts this run ended.
        seconds: how long it took.
        reason: why it ended before its work was done, if it did.
    """

    exit_code: int
    counts: dict[str, int]
    failed: list[int]
    waiting: list[int]
    faults: dict[int, str]
    attempts: int
    seconds: float
    reason: str

    def as_json(self) -> dict[str, Any]:
        """The outcome as one JSON object."""
        words = {"exitCode": self.exit_code, "counts": self.counts, "failed": self.failed, "waiting": self.waiting}
        faults = [{"task": i, "fault": text} for i, text in self.faults.items()]
        return {**words, "faults": faults, "attempts": self.attempts, "seconds": round(self.seconds, 3),
                "reason": self.reason}  # fmt: skip


def conclude(
    graph: Graph, scope: Iterable[int], targets: Iterable[int] | None, *, attempts: int, seconds: float,
    signal: int, reason: str,
) -> Outcome:  # fmt: skip
    """Sum up a run.

    Args:
        graph: the store at the end.
        scope: the ids that the run was about.
        targets: the ids that it was asked for; None for all.
        attempts: how many attempts it ended.
        seconds: how long it took.
        signal: the signal that interrupted it, 0 if none did.
        reason: why it ended early, empty if it did not.
    """
    tasks = [graph.tasks[i] for i in scope if i in graph.tasks]
    judged = tasks if targets is None else [graph.tasks[i] for i in targets if i in graph.tasks]
    counts = dict(Counter(task.status for task in tasks))
    if saved := sum(1 for task in tasks if recovered(task)):
        counts["recovered"] = saved
    failed = sorted((t for t in tasks if t.status == FAILED), key=lambda t: (t.finished_at, t.id))
    waiting = [task.id for task in tasks if task.status not in SETTLED]
    if signal:
        code = 128 + signal
    elif graph.faults:
        code = EXIT_STORE
    elif any(_failed(graph, task) for task in judged):
        code = EXIT_FAILED
    elif any(task.status not in SETTLED for task in judged):
        code = EXIT_WAITING
    else:
        code = EXIT_OK
    faults = {task_id: fault.message for task_id, fault in graph.faults.items()}
    return Outcome(code, counts, [t.id for t in failed], waiting, faults, attempts, seconds, reason)


def _failed(graph: Graph, task: Task) -> bool:
    """Whether a task counts as a failure: not if a person ended it, or ended what ended it."""
    if task.status == FAILED:
        return True
    if task.status == CANCELLED and task.cause:
        return any(graph.tasks[i].status == FAILED for i in roots(graph, task) if i in graph.tasks)
    return False
