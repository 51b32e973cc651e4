"""What each verb does to a working set: start, end, reopen, skip, cancel, hold, release.

Each function changes tasks through the one door in `status`, then lets the change flow down. Pure: time and facts come as
arguments, and whoever calls writes the result.
"""

from __future__ import annotations

from typing import Any, Final

from taskgraph.core import retry
from taskgraph.core.fields import format_time, parse_time
from taskgraph.core.flow import flow, recompute, reopened
from taskgraph.core.graph import Graph
from taskgraph.core.limits import Limits
from taskgraph.core.rules import readiness
from taskgraph.core.status import (
    COMPLETED,
    FAILED,
    HELD,
    IN_PROGRESS,
    PENDING,
    SETTLED,
    SKIPPED,
    move,
    refuse,
)
from taskgraph.core.task import Attempt, Task
from taskgraph.errors import RefusedError

_EVENT_FACTS: Final = ("attempt", "outcome", "exitCode", "signal", "error", "lastLine")
_VISIT_FIELDS: Final = ("result", "stale", "reason", "startedAt", "heartbeatAt")


def start(
    graph: Graph,
    task: Task,
    at: str,
    *,
    floor: int = 0,
    waited: bool = False,
    force: bool = False,
    **facts: Any,
) -> Attempt:
    """Begin an attempt.

    Args:
        graph: the task and its direct upstreams.
        task: the task.
        at: the moment, ISO 8601.
        floor: the highest number that an attempt is known to have had, even one that an edit forgot.
        waited: whether its delay is over by a clock that is surer than ``at``.
        force: start although it is blocked or delayed.
        **facts: what the attempt records: ``owner``, ``worker``, ``process``.

    Raises:
        RefusedError: the task is not ready, or another attempt is under way.
    """
    if task.status == IN_PROGRESS:
        raise RefusedError(f"{task.title} is already claimed by {holder(task)}", task=task.id, owner=task.owner)
    if task.status not in (PENDING, HELD):
        raise refuse(task, IN_PROGRESS)
    if not force:
        require_ready(graph, task, float("inf") if waited else parse_time(at), "start")
    number = next_number(task, floor)
    rung = "retry" if retry.used(task.tries) else "first"
    attempt: Attempt = {"number": number, "visit": task.visit, "rung": rung, "startedAt": at}
    attempt.update({key: value for key, value in facts.items() if value})  # type: ignore[typeddict-item]
    task.attempts = [*task.attempts, attempt]
    task.clear("stale")
    note: dict[str, Any] = {"attempt": number, **({"forced": True} if force else {})}
    move(graph, task, IN_PROGRESS, "started", at, note, startedAt=at, owner=facts.get("owner"))
    return attempt


def next_number(task: Task, floor: int) -> int:
    """The number that the next attempt of a task will have."""
    return max(floor, *(attempt["number"] for attempt in task.attempts), 0) + 1


def require_ready(graph: Graph, task: Task, now: float, what: str) -> None:
    """Refuse to act on a task that waits for others or for its time.

    Raises:
        RefusedError: names the blockers.
    """
    ready = readiness(graph, task, now)
    if ready.state == "blocked":
        names = ", ".join(str(i) for i in ready.waits_for)
        raise RefusedError(
            f"{task.title} is blocked by {names}; it cannot {what} before they settle (--force overrides)",
            task=task.id, blockedBy=list(ready.waits_for),
        )  # fmt: skip
    if ready.state == "delayed":
        raise RefusedError(
            f"{task.title} waits {ready.seconds:.1f} s more for its retry (--force overrides)", task=task.id
        )


def holder(task: Task) -> str:
    """Who works on a task now, for a sentence."""
    current = task.current
    who = (
        task.owner
        or (current and current.get("owner"))
        or ("a run" if current and "process" in current else "nobody named")
    )
    return f"{who} (attempt {current['number']})" if current else str(who)


def close(task: Task, at: str, facts: dict[str, Any]) -> None:
    """Give the attempt that is under way its ending, if there is one."""
    current = task.current
    if current is not None:
        known = {key: value for key, value in facts.items() if value not in (None, "")}
        ended: Any = {**current, "finishedAt": at, "outcome": "", **known}
        task.attempts = [*task.attempts[:-1], ended]


def conclude(
    graph: Graph, task: Task, at: str, limits: Limits, facts: dict[str, Any], result: Any = None
) -> retry.Decision:
    """End the attempt that is under way and do what follows from how it ended.

    Args:
        graph: the task and what is below it.
        task: a task in progress.
        at: the moment, ISO 8601.
        limits: what holds for the task.
        facts: how it ended: ``outcome`` and, where known, ``exitCode``, ``signal``, ``error``, ``lastLine``, …
        result: what the task answered, if it completed.

    Returns:
        the decision that was carried out.
    """
    current = task.current
    claimed = current is not None and "process" not in current
    note = {key: facts[key] for key in _EVENT_FACTS if facts.get(key) not in (None, "")}
    if current is not None:
        note["attempt"] = current["number"]
    close(task, at, facts)
    tries = task.tries or [{"number": 0, "outcome": str(facts["outcome"])}]
    decision = retry.decide(tries, limits, claimed=claimed)
    if decision.action == "complete":
        _succeed(graph, task, at, note, result)
    elif decision.action == "release":
        move(graph, task, PENDING, "released", at, {**note, "why": decision.reason})
        task.owner = ""
    elif decision.action == "retry":
        _plan_retry(graph, task, at, note, decision)
    else:
        fail_for_good(graph, task, at, decision.action, decision.reason, note)
    flow(graph, [task.id], at)
    if task.status == PENDING:
        settle_own(graph, task, at)
    return decision


def _plan_retry(graph: Graph, task: Task, at: str, note: dict[str, Any], decision: retry.Decision) -> None:
    last = task.attempts[-1] if task.attempts else None
    not_before = ""
    if decision.delay and last is not None:
        waiting: Any = {**last, "retryIn": round(decision.delay, 3)}
        task.attempts = [*task.attempts[:-1], waiting]
        not_before = format_time(parse_time(at) + decision.delay)
    move(graph, task, PENDING, "retrying", at, {**note, "why": decision.reason}, notBefore=not_before)
    if last is not None and last.get("owner"):
        task.owner = ""


def _succeed(graph: Graph, task: Task, at: str, note: dict[str, Any], result: Any) -> None:
    # What was under way when an upstream was reopened has used the old result, and stays marked.
    if task.status != IN_PROGRESS:
        task.clear("stale")
    move(graph, task, COMPLETED, "completed", at, note, result=result)


def fail_for_good(
    graph: Graph, task: Task, at: str, action: str, reason: str, note: dict[str, Any] | None = None
) -> None:
    """Carry out the last step of the ladder: ``fail``, ``skip``, ``hold`` or ``stop``."""
    if action == "skip":
        move(graph, task, SKIPPED, "skipped", at, note, reason=reason, waived=True)
    elif action == "hold":
        move(graph, task, HELD, "held", at, note, reason=reason)
    else:
        stop = {"rung": "stop"} if action == "stop" else {}
        move(graph, task, FAILED, "failed", at, {**(note or {}), **stop}, reason=reason)


def complete(graph: Graph, task: Task, at: str, *, result: Any = None, force: bool = False) -> None:
    """Complete a task by somebody's word.

    Raises:
        RefusedError: it is blocked, and no ``force`` was used.
    """
    if task.status == PENDING and not force:
        require_ready(graph, task, parse_time(at), "complete")
    current = task.current
    note: dict[str, Any] = {"attempt": current["number"]} if current else {}
    if force:
        note["forced"] = True
    if task.status == COMPLETED:
        if result is not None:
            task.result = result
            graph.record("result", task, at, result=result)
        return
    close(task, at, {"outcome": retry.COMPLETED})
    _succeed(graph, task, at, note, result)
    flow(graph, [task.id], at)


def fail(graph: Graph, task: Task, at: str, limits: Limits, reason: str) -> retry.Decision:
    """Report a failure: of the attempt under way (which may be retried), or of the task itself."""
    if task.status == IN_PROGRESS and task.current is not None:
        return conclude(graph, task, at, limits, {"outcome": retry.FAILED, "error": reason or "reported as failed"})
    if task.status != FAILED:
        move(graph, task, FAILED, "failed", at, reason=reason or "failed by a person's word")
        flow(graph, [task.id], at)
    return retry.Decision("fail", reason=reason)


def put_aside(graph: Graph, task: Task, at: str, to: str, reason: str) -> bool:
    """Skip, cancel or hold a task by a person's word; its attempt is interrupted. False if it stood there already."""
    if task.status == to and not task.cause:
        return False
    current = task.current
    note: dict[str, Any] = {"attempt": current["number"]} if current else {}
    close(task, at, {"outcome": retry.INTERRUPTED})
    waived = {"waived": True} if to == SKIPPED else {}
    if task.status == to:
        # The cascade had ended it; from now on a person has.
        task.clear("cause")
        said = {**({"reason": reason} if reason else {}), **waived}
        for key, value in said.items():
            task.put(key, value)
        graph.record(to, task, at, status=to, **said)
    else:
        move(graph, task, to, to, at, note, reason=reason, **waived)
    flow(graph, [task.id], at)
    return True


def release(graph: Graph, task: Task, at: str, reason: str = "") -> None:
    """Give a task back: from work in progress at no cost, or from being held.

    Raises:
        RefusedError: it is neither.
    """
    if task.status not in (IN_PROGRESS, HELD):
        raise RefusedError(f"{task.title} is {task.status}: there is nothing to release", task=task.id)
    current = task.current
    note: dict[str, Any] = {"attempt": current["number"]} if current else {}
    close(task, at, {"outcome": retry.INTERRUPTED})
    move(graph, task, PENDING, "released", at, {**note, **({"why": reason} if reason else {})})
    if task.owner:
        task.owner = ""
    settle_own(graph, task, at)


def reopen(graph: Graph, task: Task, at: str, *, downstream: bool = False) -> list[int]:
    """Begin a new visit, with a fresh set of retries; the history stays.

    Args:
        graph: the task and everything below it.
        task: a task that has settled or is held.
        at: the moment, ISO 8601.
        downstream: also reopen what completed or failed below it.

    Returns:
        the ids below that keep going although their upstream is open again; they are marked ``stale``.

    Raises:
        RefusedError: the task is under way.
    """
    if task.status == PENDING and not downstream:
        return []
    if task.status == IN_PROGRESS:
        raise RefusedError(
            f"{task.title} is in progress; wait for it, or stop it with 'taskgraph cancel {task.id}'", task=task.id
        )
    chosen = [task] if task.status != PENDING else []
    if downstream:
        below = (graph.get(i) for i in graph.closure([task.id], down=True)[1:])
        chosen += [t for t in below if t is not None and t.status in (COMPLETED, FAILED)]
    for each in chosen:
        _new_visit(graph, each, at)
    flow(graph, [each.id for each in chosen], at)
    for each in chosen:
        settle_own(graph, each, at)
    return reopened(graph, [each.id for each in chosen])


def _new_visit(graph: Graph, task: Task, at: str) -> None:
    visit = task.visit + 1
    task.clear(*_VISIT_FIELDS)
    if task.owner and not task.manual:
        task.owner = ""
    move(graph, task, PENDING, "reopened", at, visits=visit)


def settle_own(graph: Graph, task: Task, at: str) -> None:
    """End or revive a task whose own rule may say so, since it is pending again or its edges changed."""
    if recompute(graph, task, at):
        flow(graph, [task.id], at)


def settled(task: Task) -> bool:
    """Whether the task has come to an end."""
    return task.status in SETTLED
