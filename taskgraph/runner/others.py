"""What others did to the store while a run goes on: commands by the history, editors by the times of files.

Brings the run's picture of the tasks up to date; starts and ends nothing. Some editors save a file by cutting it to nothing
or by moving it away first: what is unreadable or gone is looked at again for a while, and what was known of it holds so long.
"""

from __future__ import annotations

import time
from typing import Final

from taskgraph.core.flow import settle_in
from taskgraph.core.graph import Graph
from taskgraph.core.task import Task
from taskgraph.runner.writer import Writer
from taskgraph.store.events import Mark
from taskgraph.store.files import Store
from taskgraph.store.promises import reaches

_SCAN: Final = 1.0
"""Seconds between looks at the times of all files, or more where a look takes long."""

_PATIENCE: Final = 1.0
"""Seconds for which a file that somebody is saving may be gone or unreadable."""

_AGAIN: Final = 0.1
"""Seconds between looks while there is such a file."""

_SHARE: Final = 50
"""A look at all files may take one part in so many of the time."""


class Others:
    """Follows what others do.

    Args:
        store: the store.
        graph: the run's picture of it.
        writer: what the run has put off.
        seen: how much of the history the picture contains.
    """

    def __init__(self, store: Store, graph: Graph, writer: Writer, seen: Mark) -> None:
        self.store, self.graph, self.writer = store, graph, writer
        self._seen = seen
        self._missed = dict.fromkeys(graph.faults, float("-inf"))
        self._next_scan = time.monotonic() + _SCAN

    def acted(self, now: float) -> bool:
        """Whether other commands wrote to the history, or a look at the files is due."""
        return now >= self._next_scan or self.store.history.mark() != self._seen

    def wrote(self) -> None:
        """Under the lock: what is in the history now is known."""
        self._seen = self.store.history.now()

    def scan_due(self, now: float) -> bool:
        """Whether a look at the files is due."""
        return now >= self._next_scan

    def may_be_back(self, now: float) -> bool:
        """Whether a file has become unreadable so lately that somebody may be saving it."""
        return any(self._is_missed(task_id, now) for task_id in self.graph.faults)

    def take_in(self, at: str, now: float, *, scan: bool) -> list[int]:
        """Under the lock: read again what others changed; returns the ids of the tasks around it."""
        ids: set[int] = set()
        here = self.store.history.now()
        if here != self._seen:
            whole = here.continues(self._seen)
            events, end = self.store.history.read(self._seen.size if whole else 0)
            # Of a history that somebody has moved away or cut short, nobody knows what it said at its end.
            scan = scan or not whole
            for event in events:
                task_id = event.get("task")
                if isinstance(task_id, int):
                    ids.add(task_id)
                    if event.get("event") == "deleted":
                        self._missed[task_id] = float("-inf")
            self._seen = Mark(here.file, end)
        if scan:
            before = time.monotonic()
            ids.update(self._changed_files(), self.graph.faults)
            self._next_scan = now + max(_SCAN, _SHARE * (time.monotonic() - before))
        changed = self.reload(sorted(ids), at, now) if ids else []
        if self.may_be_back(now):
            self._next_scan = now + _AGAIN
        return changed

    def _changed_files(self) -> list[int]:
        stamps, known = self.store.stamps(), self.graph.tasks
        changed = [i for i, stamp in stamps.items() if i not in known or known[i].stamp != stamp]
        return changed + [i for i in known if i not in stamps]

    def look_at(self, task_id: int, at: str, now: float) -> bool:
        """Under the lock: whether what is known of a task is what its file says; if it was not, it is now."""
        task = self.graph.tasks.get(task_id)
        if task is not None and not self.store.changed_on_disk(task):
            return True
        self.reload([task_id], at, now)
        return False

    def reload(self, ids: list[int], at: str, now: float) -> list[int]:
        """Read tasks afresh, with the neighbours to which their edges changed, and bring what is around them into order."""
        graph, queue, seen = self.graph, list(ids), set(ids)
        changed = []
        for task_id in queue:
            old = graph.tasks.get(task_id)
            fault = graph.faults.pop(task_id, None)
            if old is not None and fault is None and not self.store.changed_on_disk(old):
                continue
            fresh = self._read(task_id, old, now)
            if task_id in graph.faults and (old is not None or fault is not None):
                # What is known of it holds on until it can be read again.
                continue
            changed.append(task_id)
            before = {*old.upstream, *old.blocks} if old is not None else set()
            after = {*fresh.upstream, *fresh.blocks} if fresh is not None else set()
            for other in before ^ after:
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
            self._replace(task_id, old, fresh)
        settle_in(graph, changed, at)
        return changed

    def _read(self, task_id: int, old: Task | None, now: float) -> Task | None:
        faults = self.graph.faults
        fresh = self.store.read(task_id, faults)
        if fresh is None and task_id not in faults and old is not None and self._is_missed(task_id, now):
            faults[task_id] = self.store.gone(task_id)
        if task_id not in faults:
            self._missed.pop(task_id, None)
        return fresh

    def _is_missed(self, task_id: int, now: float) -> bool:
        """Whether a file is gone or unreadable only since lately."""
        return now - self._missed.setdefault(task_id, now) < _PATIENCE

    def _replace(self, task_id: int, old: Task | None, fresh: Task | None) -> None:
        if fresh is None:
            self.graph.drop(task_id)
        elif old is not None and old.was and old.attempts and not reaches(fresh, old.attempts[-1]):
            # What the run put on record is not yet in the file.
            self.store.lay_over(old, fresh)
        else:
            self.writer.forget(task_id)
            self.graph.add(fresh)
