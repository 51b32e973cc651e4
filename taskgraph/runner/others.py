"""What others did to the store while a run goes on: commands by the history, editors by the times of files.

Brings the run's picture of the tasks up to date; starts and ends nothing.
"""

from __future__ import annotations

import time
from typing import Final

from taskgraph.core.flow import settle_in
from taskgraph.core.graph import Graph
from taskgraph.core.task import Task
from taskgraph.runner.writer import Writer
from taskgraph.store.files import Store

_SCAN: Final = 1.0
"""Seconds between looks at the times of all files, or more where a look takes long."""

_SHARE: Final = 50
"""A look at all files may take one part in so many of the time."""


class Others:
    """Follows what others do.

    Args:
        store: the store.
        graph: the run's picture of it.
        writer: what the run has put off.
        seen: the size of the history that the picture contains, in bytes.
    """

    def __init__(self, store: Store, graph: Graph, writer: Writer, seen: int) -> None:
        self.store, self.graph, self.writer = store, graph, writer
        self._seen = seen
        self._next_scan = time.monotonic() + _SCAN

    def acted(self, now: float) -> bool:
        """Whether other commands wrote to the history, or a look at the files is due."""
        return now >= self._next_scan or self.store.history.size() != self._seen

    def wrote(self) -> None:
        """Under the lock: what is in the history now is known."""
        self._seen = self.store.history.now()

    def scan_due(self, now: float) -> bool:
        """Whether a look at the files is due."""
        return now >= self._next_scan

    def take_in(self, at: str, now: float, *, scan: bool) -> list[int]:
        """Under the lock: read again what others changed; returns the ids of the tasks around it."""
        ids: set[int] = set()
        if self.store.history.now() != self._seen:
            events, self._seen = self.store.history.read(self._seen)
            ids.update(event["task"] for event in events if "task" in event)
        if scan:
            before = time.monotonic()
            ids.update(self._changed_files())
            self._next_scan = now + max(_SCAN, _SHARE * (time.monotonic() - before))
        return self.reload(sorted(ids), at) if ids else []

    def _changed_files(self) -> list[int]:
        stamps, known = self.store.stamps(), self.graph.tasks
        changed = [i for i, stamp in stamps.items() if i not in known or known[i].stamp != stamp]
        return changed + [i for i in known if i not in stamps]

    def reload(self, ids: list[int], at: str) -> list[int]:
        """Read tasks afresh, with the neighbours to which their edges changed, and bring what is around them into order."""
        graph, queue, seen = self.graph, list(ids), set(ids)
        for task_id in queue:
            old = graph.tasks.get(task_id)
            if old is not None and not self.store.changed_on_disk(old):
                continue
            graph.faults.pop(task_id, None)
            fresh = self.store.read(task_id, graph.faults)
            if task_id in graph.faults and old is not None:
                # What is known of it holds on until it can be read again.
                continue
            before = {*old.upstream, *old.blocks} if old is not None else set()
            after = {*fresh.upstream, *fresh.blocks} if fresh is not None else set()
            for other in before ^ after:
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
            self._replace(task_id, old, fresh)
        settle_in(graph, queue, at)
        return queue

    def _replace(self, task_id: int, old: Task | None, fresh: Task | None) -> None:
        if fresh is None:
            self.graph.drop(task_id)
        elif old is not None and self.writer.promised(task_id) and old.attempts[-1] not in fresh.attempts:
            self.store.lay_over(old, fresh)
        else:
            self.writer.forget(task_id)
            self.graph.add(fresh)
