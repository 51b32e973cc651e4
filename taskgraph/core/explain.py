"""Why a task is not running: each blocker and what it waits for, down to the root causes. Pure."""

from __future__ import annotations

from typing import Any

from taskgraph.core.fields import parse_time
from taskgraph.core.graph import Graph
from taskgraph.core.moves import holder
from taskgraph.core.retry import describe
from taskgraph.core.rules import planned_delay, readiness, state
from taskgraph.core.status import COMPLETED, FAILED, HELD, IN_PROGRESS, PENDING
from taskgraph.core.task import Task

_MOST = 12


def roots(graph: Graph, task: Task) -> list[int]:
    """The ids of the tasks whose ending, by whatever way, ended this one: walks ``cause`` up."""
    seen = {task.id: None}
    queue, found = [task.id], []
    for here in queue:
        at = graph.get(here)
        cause = at.cause if at is not None else []
        if not cause and here != task.id:
            found.append(here)
        for up in cause:
            if up not in seen:
                seen[up] = None
                queue.append(up)
    return found


def _waits(graph: Graph, task: Task, now: float) -> list[int]:
    return list(readiness(graph, task, now).waits_for) if task.status == PENDING else []


def waits_for(graph: Graph, task: Task, now: float) -> list[tuple[int, list[int]]]:
    """Everything a task waits for, directly or not, the nearest first, each with what it waits for itself."""
    seen = {task.id: None}
    queue, rows = [task.id], []
    for here in queue:
        at = graph.get(here)
        blockers = _waits(graph, at, now) if at is not None else []
        rows.append((here, blockers))
        for up in blockers:
            if up not in seen:
                seen[up] = None
                queue.append(up)
    return rows


def _ring(rows: list[tuple[int, list[int]]], start: int) -> list[int] | None:
    """A cycle on which the task waits for itself, if that is why it waits."""
    ups = dict(rows)
    came: dict[int, int] = {}
    queue = [start]
    for here in queue:
        for up in ups.get(here, ()):
            if up == start:
                way = [start, here]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return way if here != start else [start, start]
            if up not in came:
                came[up] = here
                queue.append(up)
    return None


def why(graph: Graph, task: Task | None, task_id: int, now: float) -> str:
    """What holds one task, in a few words, without its blockers."""
    if task is None:
        fault = graph.faults.get(task_id)
        return f"cannot be read ({fault.message})" if fault else "does not exist"
    if task.status == IN_PROGRESS:
        return f"is in progress with {holder(task)}"
    if task.status == HELD:
        return "is held for a person to decide" + (f": {task.reason}" if task.reason else "")
    if task.status != PENDING:
        return task.status + (f": {task.reason}" if task.reason else "")
    ready = readiness(graph, task, now)
    if ready.state == "delayed":
        last = f" (last attempt: {describe(task.attempts[-1])})" if task.attempts else ""
        return f"waits {ready.seconds:.1f} s more before its retry{last}"
    if ready.state == "ready":
        if not task.manual:
            return "is ready to run"
        return f"waits for {task.owner} to do it" if task.owner else "waits for a person to do it"
    return "waits for " + ", ".join(map(str, ready.waits_for))


def explain(graph: Graph, task: Task, now: float, silent: bool = False) -> dict[str, Any]:
    """Why a task stands where it stands.

    Args:
        graph: the task and everything above it.
        task: the task.
        now: seconds since 1970.
        silent: whether its last sign of life is older than its limit.

    Returns:
        ``task``, ``state``, ``text`` (one paragraph), ``blockers`` (everything it waits for: ``task``, ``status``,
        ``why``, ``waitsFor``) and ``rootCauses`` (ids).
    """
    ready = readiness(graph, task, now)
    rows = waits_for(graph, task, now)
    blockers = [
        {"task": i, "status": t.status if (t := graph.get(i)) is not None else "missing",
         "why": why(graph, t, i, now), "waitsFor": ups}
        for i, ups in rows[1:]
    ]  # fmt: skip
    causes = [i for i, ups in rows[1:] if not ups]
    text = f"{_sentence_start(task)} {why(graph, task, task.id, now)}"
    if task.status == PENDING:
        ring = _ring(rows, task.id)
        if ring:
            causes = sorted(set(ring))
            text += f". It waits for itself: {' → '.join(map(str, ring))}; take one of these edges away"
            others = [f"{i} {why(graph, graph.get(i), i, now)}" for i, ups in rows[1:] if not ups]
            text += f". Besides, {'; '.join(others[:_MOST])}" if others else ""
        elif rows[1:]:
            text += _down_to_roots(graph, rows, causes, now)
        elif ready.state == "delayed" and task.attempts:
            text += _late_clock(task, now)
    elif task.cause:
        causes = roots(graph, task)
        named = "; ".join(f"{i} {why(graph, graph.get(i), i, now)}" for i in causes[:_MOST])
        text += f", since {', '.join(map(str, task.cause))} ended; at the root: {named}"
    elif task.status == FAILED:
        text += f". 'taskgraph logs {task.id}' shows its output, 'taskgraph reopen {task.id}' has it done again"
    elif task.status == HELD:
        text += f". 'taskgraph complete', 'reopen', 'skip', 'cancel' or 'fail' {task.id} settles it"
    elif task.status == COMPLETED and task.stale:
        text += ", but an upstream was reopened since"
    elif silent:
        text += ", and has given no sign of life for longer than its limit: it has stalled"
    shown = state(graph, task, now, silent)
    return {"task": task.id, "state": shown, "text": text + ".", "blockers": blockers, "rootCauses": causes}


def _sentence_start(task: Task) -> str:
    return task.title[0].upper() + task.title[1:]


def _late_clock(task: Task, now: float) -> str:
    ahead = parse_time(task.not_before) - now
    return " (its notBefore is further ahead than any planned delay, so the clock has changed)" if (
        ahead > planned_delay(task) + 1
    ) else ""  # fmt: skip


def _down_to_roots(graph: Graph, rows: list[tuple[int, list[int]]], causes: list[int], now: float) -> str:
    direct = rows[0][1]
    links = [f"{i} waits for {', '.join(map(str, ups))}" for i, ups in rows[1:] if ups]
    if len(links) > _MOST:
        links = [*links[:_MOST], f"and {len(links) - _MOST} more wait in turn"]
    ends = [f"{i} {why(graph, graph.get(i), i, now)}" for i in causes]
    if len(ends) > _MOST:
        ends = [*ends[:_MOST], f"and {len(ends) - _MOST} more"]
    between = f"; {'; '.join(links)}" if links else ""
    at_root = f". {'At the root: ' if causes != direct else ''}{'; '.join(ends)}" if ends else ""
    return between + at_root
