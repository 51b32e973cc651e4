"""Making, describing, linking and deleting tasks in a working set.

Pure: ids and times come as arguments, and whoever calls writes the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from taskgraph.core import moves
from taskgraph.core.fields import as_id
from taskgraph.core.graph import Graph, link, path, unlink
from taskgraph.core.status import IN_PROGRESS
from taskgraph.core.task import FIELDS, FieldError, Task, new_task
from taskgraph.errors import CycleError, NotFoundError, RefusedError, UsageError

Ref = int | str
"""A task is named by its id (``3``, ``"3"``, ``"#3"``) or by its name."""

Refs = Ref | Iterable[Ref]
"""Tasks, or a single one."""

_JSON_NAMES = {name: field.key for name, field in vars(Task).items() if field in FIELDS.values()}
_SET_BY_VERBS = frozenset({"id", "status", "blockedBy", "unblockedBy", "blocks", "attempts", "visits", "cause"})


class Edges(NamedTuple):
    """Edges to draw and to take away, seen from one task."""

    add_blocked_by: tuple[Ref, ...] = ()
    remove_blocked_by: tuple[Ref, ...] = ()
    add_blocks: tuple[Ref, ...] = ()
    remove_blocks: tuple[Ref, ...] = ()

    def need_everything(self) -> bool:
        """Whether the whole store must be known: for names, and to see a cycle."""
        return bool(self.add_blocked_by or self.add_blocks) or any(id_of(ref) is None for refs in self for ref in refs)


def id_of(ref: Ref) -> int | None:
    """The id that a reference gives, or None where it is a name."""
    try:
        return as_id(ref)
    except ValueError:
        return None


def several(refs: Refs) -> tuple[Ref, ...]:
    """Tasks as a tuple; a single one stands for itself."""
    return (refs,) if isinstance(refs, int | str) else tuple(refs)


def resolve(graph: Graph, ref: Ref) -> Task:
    """The task that an id or a name means.

    Raises:
        NotFoundError: there is none.
        StoreError: its file cannot be read.
    """
    task_id = id_of(ref)
    task = graph.get(task_id) if task_id is not None else graph.find(str(ref))
    if task is not None:
        return task
    if task_id in graph.faults:
        raise graph.faults[task_id]
    raise NotFoundError(f"there is no task {ref if task_id is None else task_id}", task=task_id or str(ref))


def by_json_name(values: dict[str, Any]) -> dict[str, Any]:
    """Fields in snake_case or by their JSON names, by their JSON names; None means not given.

    Raises:
        UsageError: a task has no such field, or a verb of its own changes it.
    """
    named = {_JSON_NAMES.get(key, key): value for key, value in values.items() if value is not None}
    for key in named:
        if key not in FIELDS:
            raise UsageError(f"a task has no field {key!r}")
        _no_verb_sets(key)
    return named


def _no_verb_sets(key: str) -> None:
    if key in _SET_BY_VERBS:
        raise UsageError(f"the field {key!r} is not set like this; it has commands of its own")


def draft(task_id: int, **values: Any) -> Task:
    """A task made of checked fields.

    Raises:
        UsageError: a field holds what it must not.
    """
    if not str(values.get("subject", "-")).strip():
        raise UsageError("a task needs a subject: what is to be done, in a line")
    try:
        return new_task(task_id, **values)
    except FieldError as error:
        raise UsageError(str(error)) from None


def claim_name(graph: Graph, name: str | None, task_id: int = 0) -> Task | None:
    """The other task that has the name already, if one has."""
    twin = graph.find(name) if name else None
    return twin if twin is not None and twin.id != task_id else None


def name_taken(twin: Task) -> RefusedError:
    """The fault of a name given twice."""
    return RefusedError(f"task {twin.id} has the name {twin.name!r} already", task=twin.id)


def create(graph: Graph, new_id: Callable[[], int], values: dict[str, Any], edges: Edges, at: str) -> Task:
    """Make a task and its edges.

    Args:
        graph: the tasks it names.
        new_id: gives an id; asked only when nothing can be refused any more.
        values: its fields, by their JSON names.
        edges: what it waits for and what waits for it.
        at: the moment, ISO 8601.
    """
    task = draft(0, **values, createdAt=at)
    above = [resolve(graph, ref) for ref in edges.add_blocked_by]
    below = [resolve(graph, ref) for ref in edges.add_blocks]
    for up in above:
        for down in below:
            if (way := path(graph, down.id, up.id)) is not None:
                raise CycleError([*way, "the new task", down.id])
    task.data["id"] = new_id()
    graph.add(task)
    said = {k: v for k, v in task.data.items() if v not in ("", [], {}) and k not in ("id", "createdAt")}
    graph.record("created", task, at, **said, **_named(edges))
    for up in above:
        draw(graph, up, task)
    for down in below:
        draw(graph, task, down)
        moves.settle_own(graph, down, at)
    moves.settle_own(graph, task, at)
    return task


def update(graph: Graph, task: Task, values: dict[str, Any], unset: Sequence[str], edges: Edges, at: str) -> None:
    """Set and take out fields, draw and take away edges.

    Raises:
        UsageError: a field holds what it must not, or a verb of its own changes it.
    """
    for key in unset:
        _no_verb_sets(key)
    checked = draft(task.id, **values).data
    twin = claim_name(graph, values.get("name"), task.id)
    if twin is not None:
        raise name_taken(twin)
    said = {key: checked[key] for key in values if task.data.get(key) != checked[key] or not task.has(key)}
    gone = [key for key in unset if task.has(key)]
    if not (said or gone or any(edges)):
        return
    for key, value in said.items():
        task.put(key, value)
    task.clear(*gone)
    redraw(graph, task, edges, at)
    graph.record("updated", task, at, **said, **_named(edges), **({"unset": gone} if gone else {}))


def _named(edges: Edges) -> dict[str, Any]:
    words = ("addBlockedBy", "removeBlockedBy", "addBlocks", "removeBlocks")
    return {word: list(refs) for word, refs in zip(words, edges, strict=True) if refs}


def draw(graph: Graph, up: Task, down: Task) -> None:
    """Draw an edge; one that is there already stays.

    Raises:
        CycleError: it would close a cycle.
    """
    if up.id in down.upstream and down.id in up.blocks:
        return
    if (way := path(graph, down.id, up.id)) is not None:
        raise CycleError([*way, down.id])
    link(up, down, settled=moves.settled(up))


def redraw(graph: Graph, task: Task, edges: Edges, at: str) -> None:
    """Take edges away, then draw edges.

    Raises:
        NotFoundError: an edge to take away is not there.
        CycleError: an edge would close a cycle.
    """
    for ref in edges.remove_blocked_by:
        up_id = _end(graph, ref)
        if not unlink(up_id, graph.get(up_id), task.id, task):
            raise NotFoundError(f"{task.title} is not blocked by {up_id}", task=task.id)
    for ref in edges.remove_blocks:
        down_id = _end(graph, ref)
        below = graph.get(down_id)
        if not unlink(task.id, task, down_id, below):
            raise NotFoundError(f"{task.title} does not block {down_id}", task=task.id)
        if below is not None:
            moves.settle_own(graph, below, at)
    for ref in edges.add_blocked_by:
        draw(graph, resolve(graph, ref), task)
    for ref in edges.add_blocks:
        down = resolve(graph, ref)
        draw(graph, task, down)
        moves.settle_own(graph, down, at)
    if edges.add_blocked_by or edges.remove_blocked_by:
        moves.settle_own(graph, task, at)


def _end(graph: Graph, ref: Ref) -> int:
    """The id at the other end of an edge that goes; its task may be missing."""
    task_id = id_of(ref)
    return task_id if task_id is not None else resolve(graph, ref).id


def delete(graph: Graph, chosen: list[int], at: str, *, force: bool, cascade: bool) -> list[int]:
    """Take tasks out of the working set and cut their edges.

    Returns:
        the ids that are gone.

    Raises:
        RefusedError: others depend on a task, or it is in progress.
    """
    gone = graph.closure(chosen, down=True) if cascade else list(dict.fromkeys(chosen))
    gone = [i for i in gone if graph.get(i) is not None]
    going = set(gone)
    for task_id in gone:
        task = graph.tasks[task_id]
        if task.status == IN_PROGRESS:
            raise RefusedError(
                f"{task.title} is in progress; stop it first with 'taskgraph cancel {task_id}'", task=task_id
            )
        others = [i for i in task.blocks if i not in going and graph.get(i) is not None]
        if others and not force:
            raise RefusedError(
                f"{_tasks(others)} on {task.title}; "
                "--force unlinks them, --cascade deletes them too",
                task=task_id, blocks=others,
            )  # fmt: skip
    for task_id in gone:
        _cut_out(graph, graph.tasks[task_id], going, at)
    return gone


def _tasks(ids: list[int]) -> str:
    names = ", ".join(map(str, ids))
    return f"tasks {names} depend" if len(ids) > 1 else f"task {names} depends"


def _cut_out(graph: Graph, task: Task, going: set[int], at: str) -> None:
    graph.record("deleted", task, at, subject=task.subject)
    for other in {*task.upstream, *task.blocks} - going:
        neighbour = graph.get(other)
        if neighbour is not None:
            unlink(task.id, None, other, neighbour)
            unlink(other, neighbour, task.id, None)
            moves.settle_own(graph, neighbour, at)
    graph.drop(task.id)
