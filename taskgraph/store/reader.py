"""Task files, read: one or all, without a lock, and as of this moment.

Knows paths, stamps and promises; knows nothing of what a task means. Writes nothing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from taskgraph import regular
from taskgraph.core.graph import Graph
from taskgraph.core.task import FieldError, Task, normalise
from taskgraph.errors import StoreError
from taskgraph.store import codec, layout, lock, promises
from taskgraph.store.replace import Stamp, stamp

_LOOKS: Final = 3
"""How often files are read that change while the store is read."""


class Reader:
    """Reads the tasks of a store.

    Args:
        root: the ``.tasks`` folder.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._holding = False
        self._promised: dict[int, promises.Promise] = {}

    def read(self, task_id: int, faults: dict[int, StoreError] | None = None) -> Task | None:
        """One task, or None where there is no file.

        Args:
            task_id: its id.
            faults: where a file that cannot be read is noted, instead of raising.

        Raises:
            StoreError: the file cannot be read, and no ``faults`` were given.
        """
        self._learn_promises()
        try:
            return self._read(task_id)
        except StoreError as error:
            if faults is None:
                raise
            faults[task_id] = error
            return None

    def _read(self, task_id: int) -> Task | None:
        task = self._read_file(task_id)
        promise = self._promised.get(task_id)
        if task is not None and promise is not None:
            promise.lay_over(task)
            task.was = None
        return task

    def _read_file(self, task_id: int) -> Task | None:
        path = f"{self.root}/task_{task_id}.json"
        try:
            fd, st = regular.open_known(path)
        except FileNotFoundError:
            if os.path.islink(path):
                raise StoreError(path, "is a link to a file that is not there") from None
            return None
        except OSError as error:
            raise StoreError(path, f"cannot be read: {error.strerror}") from None
        try:
            raw = os.read(fd, st.st_size + 1)
            while len(raw) > st.st_size and (more := os.read(fd, 1 << 20)):
                raw += more
        except OSError as error:
            raise StoreError(path, f"cannot be read: {error.strerror}") from None
        finally:
            os.close(fd)
        try:
            data = normalise(codec.decode(raw))
        except codec.Unreadable as error:
            raise StoreError(path, error.reason, error.line) from None
        except FieldError as error:
            raise StoreError(path, str(error), codec.line_of(raw, error.key)) from None
        said = data.get("id", task_id)
        if said == task_id:
            data["id"] = task_id
            return Task(data, stamp(st))
        # The name of the file is the id; the next write says so in the file as well.
        task = Task(data, stamp(st))
        task.id = task_id
        return task

    def _learn_promises(self) -> bool:
        """Outside of the lock: find out what is not yet in its file; returns whether somebody is at work just now."""
        if self._holding:
            return False
        record = lock.read(f"{self.root}/{lock.NAME}")
        self._promised = {p.task: p for p in promises.parse(record.promised)} if record and record.promised else {}
        return record is not None and record.since != "-"

    def _lock_used(self) -> int:
        """When the lock was last taken or let go, in ns; 0 where it never was."""
        try:
            return os.stat(f"{self.root}/{lock.NAME}").st_mtime_ns
        except OSError:
            return 0

    def gone(self, task_id: int) -> StoreError:
        """What is to be said of a task file that was there a moment ago."""
        return StoreError(layout.task_path(self.root, task_id), "was there a moment ago and has gone")

    def ids(self) -> list[int]:
        """The ids that have a file, in order, readable or not.

        Raises:
            StoreError: the folder cannot be read.
        """
        try:
            return layout.ids(self.root)
        except OSError as error:
            raise StoreError(self.root, f"cannot be read: {error.strerror}") from None

    def load(self) -> Graph:
        """The whole store as it stands, not yet reconciled; files that cannot be read are noted in ``faults``.

        What somebody changes while it is read is read again, a few times, so that it mostly is of one moment.
        """
        graph, stamps = Graph(), dict[int, Stamp]()
        for _ in range(_LOOKS):
            used, disturbed = self._lock_used(), self._learn_promises()
            self._read_into(graph, stamps)
            if self._holding or not (disturbed or self._lock_used() != used):
                break
            stamps = self.stamps()
        return graph

    def _read_into(self, graph: Graph, stamps: dict[int, Stamp]) -> None:
        """Read all tasks, except those that were read before from the versions with these stamps."""
        known, ids = graph.tasks, self.ids()
        for task_id in {*known, *graph.faults}.difference(ids):
            graph.drop(task_id)
            graph.faults.pop(task_id, None)
        for task_id in ids:
            old = known.get(task_id)
            if old is not None and old.stamp == stamps.get(task_id) and task_id not in self._promised:
                continue
            try:
                task = self._read(task_id)
            except StoreError as error:
                graph.faults[task_id] = error
                continue
            if task is not None:
                graph.add(task)

    def lazy(self) -> Graph:
        """A working set that reads single tasks as they are asked for."""
        faults: dict[int, StoreError] = {}
        graph = Graph(lambda task_id: self.read(task_id, faults))
        graph.faults = faults
        return graph

    def changed_on_disk(self, task: Task) -> bool:
        """Whether the file of a task is another than the one it was read from."""
        try:
            return stamp(os.stat(layout.task_path(self.root, task.id))) != task.stamp
        except OSError:
            return task.stamp is not None

    def stamps(self) -> dict[int, Stamp]:
        """The stamp of every task file, by id."""
        found = {}
        with os.scandir(self.root) as entries:
            for entry in entries:
                task_id = layout.id_of(entry.name)
                if task_id is not None:
                    with suppress(OSError):
                        found[task_id] = stamp(entry.stat())
        return found
