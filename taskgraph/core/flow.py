"""How endings and repairs flow down the edges.

What the cascade ended is recomputed from the statuses of the upstreams, never toggled, so the order of events does not matter.
A task that a person ended has no ``cause`` and is never touched. Pure; knows nothing of disks.
"""

from __future__ import annotations

from collections.abc import Iterable

from taskgraph.core.graph import Graph, order
from taskgraph.core.rules import (
    FAILURE,
    PASSED_OVER,
    SUCCESS,
    UNREACHABLE,
    WAITING,
    ending,
    outcome,
    outcomes_of,
    verdict,
)
from taskgraph.core.status import CANCELLED, COMPLETED, IN_PROGRESS, PENDING, SETTLED, SKIPPED, move
from taskgraph.core.task import Task


def flow(graph: Graph, sources: Iterable[int], at: str) -> list[int]:
    """Carry changed statuses down: clear or restore ``blockedBy``, end what became unreachable, revive what can run again.

    Args:
        graph: the tasks; changed ones are marked there.
        sources: ids whose status changed.
        at: the moment, ISO 8601.

    Returns:
        the ids of the tasks below whose edges or status changed, each once.
    """
    touched: dict[int, None] = {}
    queue = list(sources)
    for source in queue:
        up = graph.get(source)
        if up is None:
            continue
        said = outcome(up)
        for down_id in up.blocks:
            down = graph.get(down_id)
            if down is None:
                continue
            if sync_edge(up, down):
                touched[down_id] = None
            if _still_waits(down, said):
                continue
            if recompute(graph, down, at):
                touched[down_id] = None
                queue.append(down_id)
    graph.touched.update(touched)
    return list(touched)


def _still_waits(down: Task, said: str) -> bool:
    """Whether one more success plainly leaves a pending task waiting, without asking its other upstreams."""
    return said == SUCCESS and down.status == PENDING and bool(down.blocked_by)


def sync_edge(up: Task, down: Task) -> bool:
    """Bring one edge to the side its upstream's status says; True if it moved."""
    if up.status in SETTLED:
        return _cross(down, up.id, "blockedBy", "unblockedBy")
    return _cross(down, up.id, "unblockedBy", "blockedBy")


def _cross(task: Task, other: int, source: str, goal: str) -> bool:
    if other not in task.data.get(source, ()):
        return False
    task.own(source).remove(other)
    if other not in task.data.get(goal, ()):
        task.own(goal).append(other)
    return True


def ended_by_cascade(task: Task) -> bool:
    """Whether an ending further up, not a person, ended the task."""
    return task.status in (CANCELLED, SKIPPED) and bool(task.cause)


def recompute(graph: Graph, task: Task, at: str) -> bool:
    """End the task if its rule has become unreachable, revive it if the rule is reachable again; True if its status changed."""
    if task.status != PENDING and not ended_by_cascade(task):
        return False
    if not task.upstream:
        return _end(graph, task, None, at)
    said = outcomes_of(graph, task)
    unreachable = verdict(task.trigger_rule, said.values()) == UNREACHABLE
    return _end(graph, task, ending(said) if unreachable else None, at)


def _end(graph: Graph, task: Task, how: tuple[str, list[int]] | None, at: str) -> bool:
    """Bring a task that no person ended to the ending that its upstreams give it, if any; True if its status changed."""
    cascade = ended_by_cascade(task)
    if how is None:
        if cascade:
            move(graph, task, PENDING, "revived", at)
        return cascade
    status, cause = how
    if cascade and task.status == status:
        if task.cause != cause:
            task.cause = cause
        return False
    if cascade:
        move(graph, task, PENDING, "revived", at)
    move(graph, task, status, status, at, cause=cause)
    return True


def reopened(graph: Graph, sources: Iterable[int]) -> list[int]:
    """Mark as stale the completed and running tasks below reopened ones, through all of them; their ids."""
    queue = list(sources)
    seen = set(queue)
    marked = []
    for here in queue:
        task = graph.get(here)
        for down_id in task.blocks if task is not None else ():
            down = graph.get(down_id)
            if down is None or down_id in seen:
                continue
            if down.status in (COMPLETED, IN_PROGRESS):
                down.stale = True
                seen.add(down_id)
                marked.append(down_id)
                queue.append(down_id)
    return marked


def reconcile(graph: Graph, at: str) -> list[int]:
    """Bring a whole store into order after any hand edit or any writer that was killed.

    An edge written on one side is completed (adding wins), settled blockers leave ``blockedBy``, and what the cascade ended
    is computed afresh. Doing it twice changes nothing more.

    Returns:
        the ids of the tasks whose status changed.
    """
    mirror(graph)
    ordered, knotted = order(graph)
    moved = []
    for task_id in ordered:
        task = graph.tasks[task_id]
        if recompute(graph, task, at):
            moved.append(task_id)
            _sync_below(graph, task)
    return moved + _untie(graph, knotted, at)


def _sync_below(graph: Graph, task: Task) -> None:
    for down_id in task.blocks:
        down = graph.tasks.get(down_id)
        if down is not None:
            sync_edge(task, down)


def _untie(graph: Graph, knotted: list[int], at: str) -> list[int]:
    """End what a culprit from outside ends among tasks that wait for each other; the ids of those whose status changed.

    None of them can be a cause by itself, so all count as open at first, whatever the last computation made of them.
    """
    free = dict.fromkeys(i for i in knotted if (t := graph.tasks[i]).status == PENDING or ended_by_cascade(t))
    ends: dict[int, tuple[str, list[int]]] = {}

    def says(up_id: int, up: Task | None) -> str:
        if up_id not in free:
            return outcome(up)
        return WAITING if up_id not in ends else FAILURE if ends[up_id][0] == CANCELLED else PASSED_OVER

    queue = list(free)
    for here in queue:
        task = graph.tasks[here]
        said = {up_id: says(up_id, up) for up_id, up in graph.upstreams(task)}
        if verdict(task.trigger_rule, said.values()) == UNREACHABLE and ends.get(here) != (how := ending(said)):
            ends[here] = how
            queue += [down_id for down_id in task.blocks if down_id in free]
    moved = [task_id for task_id in free if _end(graph, graph.tasks[task_id], ends.get(task_id), at)]
    for task_id in moved:
        _sync_below(graph, graph.tasks[task_id])
    return moved


def settle_in(graph: Graph, ids: Iterable[int], at: str) -> list[int]:
    """Bring into order what lies around some tasks that were read afresh.

    Returns:
        the ids whose edges or status changed.
    """
    ids = list(ids)
    touched: dict[int, None] = {}
    for task_id in ids:
        task = graph.get(task_id)
        if task is None:
            continue
        for up_id, up in graph.upstreams(task):
            if up is not None and task_id not in up.blocks:
                up.blocks = [*up.blocks, task_id]
                touched[up_id] = None
        for down_id in task.blocks:
            down = graph.get(down_id)
            if down is not None and task_id not in down.blocked_by and task_id not in down.unblocked_by:
                down.blocked_by = [*down.blocked_by, task_id]
                touched[down_id] = None
        _sort_edges(graph, task)
        if recompute(graph, task, at):
            touched[task_id] = None
    graph.touched.update(ids, touched)
    return list(touched | dict.fromkeys(flow(graph, ids, at)))


def settle_alone(graph: Graph, task: Task, at: str) -> None:
    """Bring one task into order from its direct upstreams, which a hand edit may have changed; looks no further up."""
    list(graph.upstreams(task))
    _sort_edges(graph, task)
    if recompute(graph, task, at):
        flow(graph, [task.id], at)


def mirror(graph: Graph) -> None:
    """Complete every one-sided edge and put each on the side its upstream's status says."""
    tasks = graph.tasks
    below = {task_id: set(task.blocks) for task_id, task in tasks.items()}
    for task in list(tasks.values()):
        for up_id in task.upstream:
            up = tasks.get(up_id)
            if up is not None and task.id not in below[up_id]:
                below[up_id].add(task.id)
                up.blocks = [*up.blocks, task.id]
    above: dict[int, set[int]] = {}
    for up in tasks.values():
        for down_id in up.blocks:
            down = tasks.get(down_id)
            if down is None:
                continue
            if down_id not in above:
                above[down_id] = set(down.upstream)
            if up.id not in above[down_id]:
                above[down_id].add(up.id)
                down.blocked_by = [*down.blocked_by, up.id]
    for task in tasks.values():
        _sort_edges(graph, task)


def _sort_edges(graph: Graph, task: Task) -> None:
    """Put every upstream of one task on its side, a missing one among those it waits for."""
    wrong_open = [i for i in task.blocked_by if (up := graph.tasks.get(i)) is not None and up.status in SETTLED]
    wrong_done = [i for i in task.unblocked_by if (up := graph.tasks.get(i)) is None or up.status not in SETTLED]
    both = set(task.blocked_by).intersection(task.unblocked_by) - set(wrong_open) - set(wrong_done)
    if wrong_open or wrong_done or both:
        gone = set(wrong_done) | both
        kept = [i for i in task.blocked_by if i not in wrong_open]
        done = [i for i in task.unblocked_by if i not in gone]
        task.blocked_by = list(dict.fromkeys([*kept, *wrong_done]))
        task.unblocked_by = list(dict.fromkeys([*done, *wrong_open]))
