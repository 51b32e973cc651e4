"""The store on disk: reading, and changes that happen whole, under the lock.

Knows files, lock, journal and history; knows nothing of what a task means.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from taskgraph import lines, regular
from taskgraph.core.graph import Graph
from taskgraph.core.task import FIELDS, FIRST, MISSING, Task
from taskgraph.errors import RefusedError, StoreError, TaskgraphError
from taskgraph.store import codec, ids, layout, lock, promises, replace
from taskgraph.store.events import History
from taskgraph.store.reader import Reader
from taskgraph.store.replace import Stamp, stamp
from taskgraph.store.spares import Spares

_EDGES: Final = frozenset({"blockedBy", "unblockedBy", "blocks"})
_JOURNAL: Final = ".journal"
_JOURNAL_KEYS: Final = frozenset({"events", "by", "size", "files", "gone"})


class Store(Reader):
    """The folder of a store.

    Args:
        root: the ``.tasks`` folder, which exists.
        lock_timeout: seconds a writer waits for the lock.
        durable: whether a change is on the disk, not only with the kernel, when a write returns.
    """

    def __init__(self, root: str, *, lock_timeout: float = lock.TIMEOUT, durable: bool = True) -> None:
        super().__init__(root)
        self.durable = durable
        self.history = History(root)
        self.spares: Spares | None = None
        self._lock = lock.StoreLock(root, lock_timeout)
        self._own = self._kept = b""
        self._faults = _Faults(root)

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the lock; yields whether nobody else changed the folder since the last holder let go.

        Raises:
            LockedError: the lock could not be had in time.
            StoreError: the store cannot be written.
        """
        self._lock.acquire()
        self._holding, self._promised = True, {}
        self.history.begin()
        in_order = False
        try:
            with self._faults:
                # A writer that was killed has disturbed the folder, so only then can there be a journal.
                finished = not self._lock.undisturbed and self._finish_journal()
                if self._lock.promised:
                    # Whoever wrote these has carried out ours.
                    self._own = b""
                if block := self._lock.promised or self._kept:
                    self._keep_promises(block)
            undisturbed = self._lock.undisturbed and not finished
            if not undisturbed:
                replace.sweep(self.root)
            try:
                yield undisturbed
            except TaskgraphError as error:
                # What was refused has changed nothing, so it has brought nothing into order either.
                in_order = undisturbed and not isinstance(error, StoreError)
                raise
            in_order = True
        finally:
            self._holding = False
            self._lock.release(in_order=in_order)

    @contextmanager
    def exchanging(self, stem: str) -> Iterator[None]:
        """Replace many files faster for a while; see `spares`. Not for changes that must be durable one by one.

        Args:
            stem: the beginning of the names of the spares in `run/`.
        """
        self.spares = Spares(f"{self.root}/run/{stem}")
        try:
            yield
        finally:
            self.spares.discard()
            self.spares = None

    def _keep_promises(self, block: bytes) -> None:
        """Write the starts that a runner promised into their task files."""
        graph = Graph()
        kept = []
        for promise in promises.parse(block):
            task = self.read(promise.task, graph.faults)
            if task is not None and promise.lay_over(task):
                graph.add(task)
            elif promise.task in graph.faults:
                # It holds until the file can be read again.
                kept.append(promise.line())
        self._save_each(graph, graph.changed(), "")
        self._kept = b"".join(kept)
        self._lock.note(self._own + self._kept)

    def save(self, graph: Graph, by: str, *, tasks: list[Task] | None = None, gone: list[int] | None = None) -> None:
        """Write what changed, add the events to the history, remove what is gone.

        A file that somebody saved since it was read is read again, and only the changed keys are laid over it. Nothing is
        changed unless everything can be.

        Args:
            graph: the tasks and the events of this step; both are marked as written.
            by: who did it.
            tasks: which tasks to write, if not all that changed.
            gone: ids of tasks to remove; with any, the change goes through the journal.

        Raises:
            StoreError: a file cannot be read again or written.
        """
        chosen = graph.changed() if tasks is None else tasks
        pending = [task for task in chosen if self._differs(task)]
        graph.dirty.difference_update([task.id for task in chosen if task.was is None])
        if not pending and not graph.events and not gone:
            return
        with self._faults:
            if gone:
                self._save_whole(graph, pending, by, gone)
            else:
                self._save_each(graph, pending, by)
        for task in pending:
            task.was = None
            graph.dirty.discard(task.id)
        graph.events.clear()

    # The same in three parts, for a run: see `runner.writer`.

    def record(self, graph: Graph, by: str) -> None:
        """Add the events of a step to the history.

        Raises:
            StoreError: they cannot be written; none of them is.
        """
        if graph.events:
            with self._faults:
                self.history.append(graph.events, by, durable=self.durable)
            graph.events.clear()

    def promise(self, lines: bytes, *, now: bool = True) -> None:
        """Write down changes that will be in their task files soon; with ``now=False`` when the lock is let go."""
        self._own = lines
        if now and (lines or self._lock.noted):
            with self._faults:
                self._lock.note(lines + self._kept)
        else:
            self._lock.keep(lines + self._kept)

    def write(self, graph: Graph, tasks: list[Task]) -> None:
        """Write the files of tasks that changed.

        One that somebody has changed, removed or made unreadable since it was read is noted in ``graph.faults``; what
        changed in it is kept, to be written when it has been read again.

        Raises:
            StoreError: one cannot be written.
        """
        with self._faults:
            self._save_each(graph, [task for task in tasks if self._differs(task)], "", missed=graph.faults)
        for task in tasks:
            if task.id not in graph.faults:
                task.was = None
                graph.dirty.discard(task.id)

    @staticmethod
    def complete(task: Task) -> None:
        """Give a task the fields that are always written, where it lacks them or the id is another than its file's."""
        for key in FIRST:
            if key not in task.data:
                task.put(key, type(FIELDS[key].default)(FIELDS[key].default))

    @staticmethod
    def _differs(task: Task) -> bool:
        if task.stamp is None:
            return True
        if task.was and any(task.data.get(key, MISSING) != old for key, old in task.was.items()):
            return True
        task.was = None
        return False

    def _save_each(
        self, graph: Graph, tasks: list[Task], by: str, *, missed: dict[int, StoreError] | None = None
    ) -> None:
        written: list[tuple[str, str, Task, Stamp]] = []
        try:
            for task in tasks:
                self.complete(task)
                path = layout.task_path(self.root, task.id)
                try:
                    target, old = replace.target(path)
                except OSError as error:
                    if missed is None:
                        raise
                    missed[task.id] = StoreError(path, f"cannot be written: {error.strerror}")
                    continue
                if missed is not None and task.stamp is not None and (old is None or stamp(old) != task.stamp):
                    missed[task.id] = StoreError(path, "was changed or removed by somebody just now")
                    continue
                if not self._catch_up(task, old):
                    graph.drop(task.id)
                    continue
                if self.spares is not None and old is not None:
                    new = self.spares.replace(target, codec.encode(task.data), old)
                    if new is not None:
                        task.stamp = stamp(new)
                        continue
                temp, written_as = replace.beside(target, codec.encode(task.data), old, durable=self.durable)
                written.append((temp, target, task, written_as))
            if graph.events:
                self.history.append(graph.events, by, durable=self.durable)
        except BaseException:
            for temp, *_ in written:
                with suppress(OSError):
                    os.unlink(temp)
            raise
        for temp, target, task, written_as in written:
            os.replace(temp, target)
            task.stamp = written_as
        if self.durable and written:
            replace.sync_folder(self.root)

    def _save_whole(self, graph: Graph, tasks: list[Task], by: str, gone: list[int]) -> None:
        files = {}
        for task in tasks:
            if self._catch_up(task, replace.target(layout.task_path(self.root, task.id))[1]):
                files[f"task_{task.id}.json"] = codec.encode(task.data).decode()
        names = [f"task_{i}.json" for i in gone]
        journal = {"files": files, "gone": names, "events": graph.events, "by": by, "size": self.history.size()}
        replace.put(f"{self.root}/{_JOURNAL}", lines.dump(journal), durable=True)
        self._finish_journal()
        for task in tasks:
            task.stamp = stamp(os.stat(layout.task_path(self.root, task.id)))

    def _finish_journal(self) -> bool:
        """Carry out a change that was written down, if there is one; may be done any number of times."""
        journal = read_journal(self.root)
        if journal is None:
            return False
        if journal["events"] and self.history.size() == journal["size"]:
            self.history.append(journal["events"], journal["by"], durable=self.durable)
        for name, text in journal["files"].items():
            replace.put(f"{self.root}/{name}", text.encode(), durable=True)
        for name in [*journal["gone"], _JOURNAL]:
            with suppress(FileNotFoundError):
                os.unlink(f"{self.root}/{name}")
        replace.sync_folder(self.root)
        return True

    def _catch_up(self, task: Task, old: os.stat_result | None) -> bool:
        """Lay our changes over a file that was saved since it was read; False if it was removed."""
        if old is None:
            return task.stamp is None
        if task.stamp is None:
            raise RefusedError(f"task {task.id} has a file already; nothing was changed", task=task.id)
        if stamp(old) == task.stamp:
            return True
        fresh = self._read(task.id)
        if fresh is None:
            return False
        self.lay_over(task, fresh)
        return True

    @staticmethod
    def lay_over(task: Task, fresh: Task) -> None:
        """Bring a changed task up to a version that somebody saved in the meantime: only our changed keys go over it.

        Where he has changed the status too, his holds, and of ours only the attempts and the edges are kept.
        """
        was = task.was or {}
        his = "status" in was and fresh.status not in (promises.status_before(task), task.status)
        for key, before in was.items():
            after = task.data.get(key, MISSING)
            if his and key not in _EDGES and key != "attempts":
                continue
            if key in _EDGES:
                ours, base = after if after is not MISSING else [], before if before is not MISSING else []
                kept = [i for i in fresh.data.get(key, []) if i in ours or i not in base]
                fresh.data[key] = kept + [i for i in ours if i not in base and i not in kept]
            elif after is MISSING:
                fresh.data.pop(key, None)
            else:
                fresh.data[key] = after
        task.data, task.stamp = fresh.data, fresh.stamp

    def allocate(self) -> int:
        """A new id, never given out before.

        Raises:
            StoreError: that cannot be noted.
        """
        with self._faults:
            return ids.allocate(self.root)[0]

    def note_ids(self, highest: int) -> None:
        """Note that somebody else gave out ids up to this one.

        Raises:
            StoreError: that cannot be noted.
        """
        if highest > ids.highest_given(self.root):
            with self._faults:
                ids.reserve(self.root, highest)


class _Faults:
    """Within it, whatever the system or the encoder refuses becomes a `StoreError` that names the file.

    Args:
        root: the folder that is named where the system names no file.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError):
            path = error.filename if isinstance(error.filename, str) else self.root
            raise StoreError(path, f"cannot be written: {error.strerror or error}; nothing was changed") from None
        if isinstance(error, ValueError):
            raise StoreError(self.root, f"cannot be written: {error}; nothing was changed") from None


def read_journal(root: str) -> dict[str, Any] | None:
    """The change that a killed writer had written down, if there is one.

    Raises:
        StoreError: the file makes no sense.
    """
    path = f"{root}/{_JOURNAL}"
    try:
        journal = lines.load(regular.read(path))
    except FileNotFoundError:
        return None
    except ValueError:
        journal = None
    if not isinstance(journal, dict) or not journal.keys() >= _JOURNAL_KEYS:
        raise StoreError(path, "is no journal of taskgraph; move it away")
    return journal


def make(root: str) -> bool:
    """Make an empty store; False if there was one already.

    Raises:
        StoreError: it cannot be made.
    """
    try:
        made = not os.path.isdir(root)
        os.makedirs(root, exist_ok=True)
        for folder in ("logs", "run"):
            os.makedirs(f"{root}/{folder}", exist_ok=True)
        ignored = f"{root}/.gitignore"
        if not os.path.exists(ignored):
            replace.put(ignored, ("\n".join(layout.IGNORED) + "\n").encode(), durable=True)
        if not ids.has_mark(root):
            ids.reserve(root, ids.highest_given(root))
    except FileExistsError:
        raise StoreError(root, "is not a folder, so no store can be made there") from None
    except OSError as error:
        raise StoreError(root, f"cannot be made: {error.strerror}") from None
    return made
