"""A store, opened: read as a view, or changed in one locked step.

What `TaskManager` builds its verbs on. Knows how much must be read for a step; knows no verbs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from taskgraph import config
from taskgraph.core.edit import Ref, Refs, id_of, resolve, several
from taskgraph.core.fields import format_time
from taskgraph.core.flow import reconcile, settle_alone
from taskgraph.core.graph import Graph
from taskgraph.core.limits import PLAIN, Limits, Settings
from taskgraph.core.limits import resolve as resolve_limits
from taskgraph.core.task import Task
from taskgraph.errors import StoreError
from taskgraph.store import files, layout, signs

T = TypeVar("T")


class OpenStore:
    """One store.

    Args:
        where: a ``.tasks`` folder or the folder that holds one; None finds one like git finds its repository.
        by: who the events name as their author; None takes ``TASKGRAPH_OWNER``, else the user's name in the environment.
        lock_timeout: seconds a change waits for the lock.
        durable: whether a change is on the disk when a method returns (it is always safe from a killed process).
        clock: seconds since 1970; for tests.

    Raises:
        NotFoundError: there is no store.
        StoreError: the store or its ``config.toml`` cannot be read.
    """

    def __init__(
        self,
        where: str | os.PathLike[str] | None = None,
        *,
        by: str | None = None,
        lock_timeout: float = 10.0,
        durable: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        named = None if where is None else os.fspath(where)
        self.root = layout.find(named, os.environ, os.getcwd())
        self.store = files.Store(self.root, lock_timeout=lock_timeout, durable=durable)
        env = os.environ
        self.by = by or env.get("TASKGRAPH_OWNER") or env.get("USER") or env.get("LOGNAME") or f"uid {os.getuid()}"
        self.clock = clock

    @property
    def settings(self) -> Settings:
        """The settings of the store, read afresh."""
        return config.load(self.root)

    @cached_property
    def view_settings(self) -> tuple[Settings, StoreError | None]:
        """The settings for a view, read once; plain ones, and why, where the file cannot be read."""
        try:
            return self.settings, None
        except StoreError as error:
            return PLAIN, error

    def now(self) -> str:
        """The present moment, ISO 8601."""
        return format_time(self.clock())

    def limits(self, task: Task) -> Limits:
        """What holds for a task."""
        return resolve_limits(task, self.settings)

    # Reading

    def snapshot(self) -> Graph:
        """The whole store, reconciled in memory; nothing is written. Files that cannot be read are in ``faults``.

        Raises:
            StoreError: the folder cannot be read.
        """
        graph = self.store.load()
        reconcile(graph, self.now())
        graph.events.clear()
        return graph

    def get(self, ref: Ref) -> Task:
        """One task.

        Raises:
            NotFoundError: there is none.
            StoreError: its file cannot be read.
        """
        return self.look(ref)[1]

    def look(self, ref: Ref) -> tuple[Graph, Task]:
        """One task, with a working set that knows its neighbours; reads no more than it must."""
        if id_of(ref) is None:
            graph = self.snapshot()
            return graph, resolve(graph, ref)
        graph = self.store.lazy()
        return graph, self._fresh(graph, ref)

    def _fresh(self, graph: Graph, ref: Ref) -> Task:
        """The task that an id or a name means, as the statuses of its direct upstreams leave it."""
        task = resolve(graph, ref)
        settle_alone(graph, task, self.now())
        return task

    def vital(self, task: Task) -> tuple[float, bool]:
        """The last sign of life of a task in progress, in seconds since 1970, and whether it is older than its limit."""
        return signs.vital(self.root, task, resolve_limits(task, self.view_settings[0]), self.clock())

    # One locked step

    def change(self, act: Callable[[Graph], T], *, whole: bool = False) -> T:
        """Do something to the store in one locked step.

        Args:
            act: changes the working set it is given.
            whole: whether it needs every task; else single ones are read as they are asked for. Where somebody else
                changed the folder since the last step, everything is read and brought into order in any case.

        Raises:
            LockedError: the lock could not be had in time.
            StoreError: something cannot be written; nothing was changed.
        """
        with self.store.locked() as undisturbed:
            graph = self.load_for_writing() if whole or not undisturbed else self.store.lazy()
            result = act(graph)
            self.store.save(graph, self.by)
        return result

    def load_for_writing(self) -> Graph:
        """Under the lock: everything, brought into order, with the ids that people gave noted as given."""
        graph = self.store.load()
        reconcile(graph, self.now())
        self.store.note_ids(max([*graph.tasks, *graph.faults], default=0))
        return graph

    def reconcile(self) -> Graph:
        """Bring the whole store into order on disk, and return it."""
        found: list[Graph] = []
        self.change(found.append, whole=True)
        return found[0]

    def each(self, refs: Refs, act: Callable[[Graph, Task], T], *, whole: bool = False) -> list[T]:
        """One step over several tasks: all of them or none."""
        chosen = several(refs)
        named = whole or any(id_of(ref) is None for ref in chosen)
        return self.change(lambda graph: [act(graph, self._fresh(graph, ref)) for ref in chosen], whole=named)
