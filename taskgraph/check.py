"""Faults of a store: named one by one, and mended where that loses nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from taskgraph import config, lines, regular
from taskgraph.core.graph import Graph, cycles
from taskgraph.core.status import SETTLED
from taskgraph.core.task import FIRST, Task
from taskgraph.errors import StoreError
from taskgraph.manager import TaskManager
from taskgraph.store import codec, files, ids, layout, replace


class Fault(NamedTuple):
    """One fault.

    Attributes:
        kind: a word for programs: ``unreadable``, ``missing``, ``cycle``, ``one_sided``, ``name``, …
        task: the task it is about, or None.
        text: one sentence.
        mendable: whether it can be mended without loss.
    """

    kind: str
    task: int | None
    text: str
    mendable: bool


def inspect(manager: TaskManager) -> list[Fault]:
    """Every fault of the store, as it stands on disk. Writes nothing."""
    raw = manager.store.load()
    faults = [Fault("unreadable", i, error.message, False) for i, error in sorted(raw.faults.items())]
    for task in raw.tasks.values():
        faults += _edges(raw, task)
        faults += _file(manager.root, task)
    for ring in cycles(_mirrored(manager)):
        faults.append(Fault("cycle", ring[0], f"these tasks wait for each other: {' → '.join(map(str, ring))}", False))
    faults += _names(raw)
    faults += _moved(manager, raw)
    faults += _folder(manager, raw)
    return faults


def _mirrored(manager: TaskManager) -> Graph:
    return manager.snapshot()


def _edges(graph: Graph, task: Task) -> Iterator[Fault]:
    for up_id in task.upstream:
        up = graph.tasks.get(up_id)
        if up is None and up_id not in graph.faults:
            hint = f"'taskgraph update {task.id} --remove-blocked-by {up_id}' takes the edge away"
            yield Fault("missing", task.id, f"task {task.id} waits for {up_id}, which does not exist; {hint}", False)
        elif up is not None and task.id not in up.blocks:
            yield Fault("one_sided", task.id, f"task {up_id} does not know that it blocks {task.id}", True)
    for down_id in task.blocks:
        down = graph.tasks.get(down_id)
        if down is None and down_id not in graph.faults:
            yield Fault("dangling", task.id, f"task {task.id} blocks {down_id}, which does not exist", True)
        elif down is not None and task.id not in down.upstream:
            yield Fault("one_sided", down_id, f"task {down_id} does not know that {task.id} blocks it", True)
    for up_id in task.blocked_by:
        up = graph.tasks.get(up_id)
        if up is not None and up.status in SETTLED:
            yield Fault("settled", task.id, f"task {task.id} lists {up_id} as open, which is {up.status}", True)
    for up_id in task.unblocked_by:
        up = graph.tasks.get(up_id)
        if up is None or up.status not in SETTLED:
            stands = "missing" if up is None else up.status
            yield Fault("unsettled", task.id, f"task {task.id} lists {up_id} as settled, which is {stands}", True)


def _file(root: str, task: Task) -> Iterator[Fault]:
    missing = [key for key in FIRST if key not in task.data]
    if missing:
        yield Fault("incomplete", task.id, f"task {task.id} has no {', '.join(missing)}", True)
    with suppress(OSError, codec.Unreadable):
        said = codec.decode(regular.read(layout.task_path(root, task.id))).get("id")
        if said is not None and str(said).lstrip("#") not in (str(task.id), f"{task.id}.0"):
            text = f"task_{task.id}.json says its id is {said}; the name of the file holds"
            yield Fault("id", task.id, text, True)


def _names(graph: Graph) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for task in graph.tasks.values():
        if task.name and task.name in seen:
            text = f"tasks {seen[task.name]} and {task.id} have the same name {task.name!r}"
            yield Fault("name", task.id, text, False)
        elif task.name:
            seen[task.name] = task.id


def _moved(manager: TaskManager, raw: Graph) -> Iterator[Fault]:
    """What the cascade would change, once the store is brought into order."""
    for task in manager.snapshot().tasks.values():
        before = raw.tasks.get(task.id)
        if before is not None and before.status != task.status:
            text = f"task {task.id} is {before.status}, but its upstreams make it {task.status}"
            yield Fault("cascade", task.id, text, True)


def _folder(manager: TaskManager, graph: Graph) -> Iterator[Fault]:
    try:
        config.load(manager.root)
    except StoreError as error:
        yield Fault("config", None, error.message, False)
    names = os.listdir(manager.root)
    for name in sorted(names):
        if name == ".journal":
            yield _journal(manager.root)
        elif replace.is_leftover(name):
            yield Fault("leftover", None, f"{name} was left by a writer that was killed", True)
        elif name in ("run", "logs") and not os.path.isdir(os.path.join(manager.root, name)):
            yield Fault("folder", None, f"{name} is no folder, so nothing can run; move it away", False)
        elif name.startswith("task_") and name.endswith(".json") and layout.id_of(name) is None:
            yield Fault("file_name", None, f"{name} is no name of a task file (task_N.json), so it is not read", False)
    highest = max([*graph.tasks, *graph.faults], default=0)
    if highest > ids.highest_given(manager.root):
        yield Fault("mark", None, f".highwatermark is behind the highest id, {highest}", True)
    yield from _history(manager)


def _history(manager: TaskManager) -> Iterator[Fault]:
    try:
        history = regular.read(manager.store.history.path).split(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        yield Fault("history", None, f"events.jsonl cannot be read: {error.strerror}", False)
        return
    for number, line in enumerate(history, 1):
        try:
            if line and not isinstance(lines.load(line), dict):
                raise ValueError
        except ValueError:
            yield Fault("history", None, f"events.jsonl, line {number}: no whole event; readers pass over it", False)


def _journal(root: str) -> Fault:
    try:
        files.read_journal(root)
    except StoreError as error:
        return Fault("journal", None, error.message, False)
    return Fault("leftover", None, ".journal was left by a writer that was killed; the next one finishes it", True)


def mend(manager: TaskManager) -> list[Fault]:
    """Mend what can be mended without loss; returns what was mended."""
    found = [fault for fault in inspect(manager) if fault.mendable]
    if found:
        manager.change(lambda graph: _mend(manager, graph), whole=True)
    return found


def _mend(manager: TaskManager, graph: Graph) -> None:
    known = graph.tasks.keys() | graph.faults.keys()
    for task in graph.tasks.values():
        if not known >= set(task.blocks):
            task.blocks = [i for i in task.blocks if i in known]
        manager.store.complete(task)
    for name in os.listdir(manager.root):
        if replace.is_leftover(name):
            os.unlink(os.path.join(manager.root, name))
