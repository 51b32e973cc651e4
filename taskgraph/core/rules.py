"""What the endings of the upstreams mean for a task: one function says whether it is ready, and if not, why.

The trigger rules carry Airflow's names and meanings. Pure; knows nothing of disks or of who asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from taskgraph.core.fields import parse_time
from taskgraph.core.graph import Graph
from taskgraph.core.status import CANCELLED, COMPLETED, FAILED, IN_PROGRESS, PENDING, SETTLED, SKIPPED
from taskgraph.core.task import Task

# What an edge says to the task at its lower end.
WAITING: Final = "waiting"
SUCCESS: Final = "success"
FAILURE: Final = "failure"
PASSED_OVER: Final = "passed over"
DISMISSED: Final = "dismissed"

# What a trigger rule makes of all edges.
MET: Final = "met"
UNREACHABLE: Final = "unreachable"


def outcome(up: Task | None) -> str:
    """What the edge from this upstream says: a missing one waits, a waived one counts as success."""
    if up is None or up.status not in SETTLED:
        return WAITING
    if up.status == COMPLETED:
        return SUCCESS
    if up.status == FAILED:
        return FAILURE
    if up.status == SKIPPED:
        return SUCCESS if up.waived or not up.cause else PASSED_OVER
    return FAILURE if up.cause else DISMISSED


def verdict(rule: str, outcomes: Iterable[str]) -> str:
    """What a trigger rule makes of the edges: `MET`, `WAITING` or `UNREACHABLE`."""
    seen = Counter(outcomes)
    if not seen:
        return MET
    waiting, success, failure = seen[WAITING], seen[SUCCESS], seen[FAILURE]
    if rule == "all_success":
        impossible = failure + seen[PASSED_OVER] + seen[DISMISSED] > 0
        return UNREACHABLE if impossible else WAITING if waiting else MET
    if rule == "one_success":
        return MET if success else WAITING if waiting else UNREACHABLE
    if rule == "one_failed":
        return MET if failure else WAITING if waiting else UNREACHABLE
    if rule in ("none_failed", "none_failed_min_one_success") and failure:
        return UNREACHABLE
    if waiting:
        return WAITING
    return UNREACHABLE if rule == "none_failed_min_one_success" and not success else MET


def judge(graph: Graph, task: Task) -> str:
    """The verdict on one task, from the statuses of its direct upstreams."""
    return verdict(task.trigger_rule, (outcome(up) for _, up in graph.upstreams(task)))


def ending(outcomes: Mapping[int, str]) -> tuple[str, list[int]]:
    """How a task whose rule is unreachable ends, and which of its direct upstreams did it, from what each says."""
    failed = [up_id for up_id, said in outcomes.items() if said in (FAILURE, DISMISSED)]
    if failed:
        return CANCELLED, sorted(failed)
    passed = [up_id for up_id, said in outcomes.items() if said == PASSED_OVER]
    return SKIPPED, sorted(passed or outcomes)


def outcomes_of(graph: Graph, task: Task) -> dict[int, str]:
    """What each direct upstream says."""
    return {up_id: outcome(up) for up_id, up in graph.upstreams(task)}


def plainly_blocked(task: Task) -> bool:
    """Whether a task waits, as can be told without asking its upstreams."""
    return bool(task.blocked_by) and task.trigger_rule not in ("one_success", "one_failed")


class Readiness(NamedTuple):
    """Whether a task may start.

    Attributes:
        state: ``blocked``, ``delayed`` or ``ready`` for a pending task, else its status.
        waits_for: the direct upstreams it waits for, or those that keep it from ever starting.
        missing: those of them that are missing or cannot be read.
        seconds: for a delayed task, how long it still waits.
    """

    state: str
    waits_for: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    seconds: float = 0.0


def planned_delay(task: Task) -> float:
    """The seconds the last attempt was told to wait for its retry: no clock can make the wait longer."""
    attempts = task.attempts
    return attempts[-1].get("retryIn", 0.0) if attempts else 0.0


def readiness(graph: Graph, task: Task, now: float) -> Readiness:
    """Whether a task may start, and if not, why: asked by every view, by ``claim`` and by ``run``.

    Args:
        graph: the task and its direct upstreams.
        task: the task.
        now: seconds since 1970.
    """
    if task.status != PENDING:
        return Readiness(task.status)
    said = judge(graph, task) if task.blocked_by or task.unblocked_by else MET
    if said == UNREACHABLE:
        return Readiness("blocked", tuple(ending(outcomes_of(graph, task))[1]))
    if said == WAITING:
        ups = {up_id: up for up_id, up in graph.upstreams(task) if outcome(up) == WAITING}
        return Readiness("blocked", tuple(ups), tuple(up_id for up_id, up in ups.items() if up is None))
    if task.not_before:
        left = min(parse_time(task.not_before) - now, planned_delay(task))
        if left > 0:
            return Readiness("delayed", seconds=left)
    return Readiness("ready")


def recovered(task: Task) -> bool:
    """Whether the task completed after an attempt of this visit that stalled or failed."""
    return task.status == COMPLETED and any(
        a.get("outcome") in ("failed", "stalled", "timeout", "lost") for a in task.tries
    )


def state(graph: Graph, task: Task, now: float, silent: bool = False) -> str:
    """The derived state that every view shows.

    Args:
        graph: the task and its direct upstreams.
        task: the task.
        now: seconds since 1970.
        silent: whether its last sign of life is older than its limit.
    """
    if task.status == IN_PROGRESS:
        return "stalled" if silent else IN_PROGRESS
    return "recovered" if recovered(task) else readiness(graph, task, now).state
