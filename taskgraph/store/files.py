"""The task files of a store: read one or all, replaced atomically, never half-written.

Knows paths, modes, links and stamps; knows nothing of what a task means.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from taskgraph.core.graph import Graph
from taskgraph.core.task import FIELDS, FIRST, MISSING, FieldError, Task, normalise
from taskgraph.errors import RefusedError, StoreError
from taskgraph.store import codec, layout, lock, promises
from taskgraph.store.events import History
from taskgraph.store.spares import Spares

Stamp = tuple[int, int, int]
"""What tells one version of a file from another: time of change in ns, size in bytes, inode."""

_EDGES: Final = frozenset({"blockedBy", "unblockedBy", "blocks"})
_JOURNAL: Final = ".journal"
_HIGH: Final = ".highwatermark"


def _stamp(st: os.stat_result) -> Stamp:
    return st.st_mtime_ns, st.st_size, st.st_ino


class Store:
    """The folder of a store.

    Args:
        root: the ``.tasks`` folder, which exists.
        lock_timeout: seconds a writer waits for the lock.
        durable: whether a change is on the disk, not only with the kernel, when a write returns.
    """

    def __init__(self, root: str, *, lock_timeout: float = lock.TIMEOUT, durable: bool = True) -> None:
        self.root = root
        self.durable = durable
        self.history = History(root)
        self._lock = lock.StoreLock(root, lock_timeout)
        self.spares: Spares | None = None
        self._holding = False
        self._promised: dict[int, promises.Promise] = {}

    # Reading: no lock, nothing written.

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
            return self._read(task_id, codec.decode)
        except StoreError as error:
            if faults is None:
                raise
            faults[task_id] = error
            return None

    def _read(self, task_id: int, decode: Callable[[bytes], dict[str, Any]]) -> Task | None:
        task = self._read_file(task_id, decode)
        promise = self._promised.get(task_id)
        if task is not None and promise is not None and promise.stamp == task.stamp:
            promise.lay_over(task)
            task.was = None
        return task

    def _read_file(self, task_id: int, decode: Callable[[bytes], dict[str, Any]]) -> Task | None:
        path = f"{self.root}/task_{task_id}.json"
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if os.path.islink(path):
                raise StoreError(path, "is a link to a file that is not there") from None
            return None
        except OSError as error:
            raise StoreError(path, f"cannot be read: {error.strerror}") from None
        try:
            st = os.fstat(fd)
            raw = os.read(fd, st.st_size + 1)
            while len(raw) > st.st_size and (more := os.read(fd, 1 << 20)):
                raw += more
        except OSError as error:
            raise StoreError(path, f"cannot be read: {error.strerror}") from None
        finally:
            os.close(fd)
        try:
            data = normalise(decode(raw))
        except codec.Unreadable as error:
            raise StoreError(path, error.reason, error.line) from None
        except FieldError as error:
            raise StoreError(path, str(error), codec.line_of(raw, error.key)) from None
        said = data.get("id", task_id)
        if said == task_id:
            data["id"] = task_id
            return Task(data, _stamp(st))
        # The name of the file is the id; the next write says so in the file as well.
        task = Task(data, _stamp(st))
        task.id = task_id
        return task

    def _learn_promises(self) -> None:
        """Outside of the lock: find out which starts are not yet in their files."""
        if not self._holding:
            record = lock.read(self._lock.path)
            self._promised = {p.task: p for p in promises.parse(record.promised)} if record and record.promised else {}

    def ids(self) -> list[int]:
        """The ids that have a file, in order, readable or not.

        Raises:
            StoreError: the folder cannot be read.
        """
        try:
            names = os.listdir(self.root)
        except OSError as error:
            raise StoreError(self.root, f"cannot be read: {error.strerror}") from None
        return sorted(i for name in names if (i := layout.id_of(name)) is not None)

    def load(self) -> Graph:
        """The whole store as it stands, not yet reconciled; files that cannot be read are noted in ``faults``."""
        self._learn_promises()
        graph = Graph()
        for task_id in self.ids():
            try:
                task = self._read(task_id, codec.decode_fast)
            except StoreError as error:
                graph.faults[task_id] = error
                continue
            if task is not None:
                graph.add(task)
        return graph

    def lazy(self) -> Graph:
        """A working set that reads single tasks as they are asked for."""
        faults: dict[int, StoreError] = {}
        graph = Graph(lambda task_id: self.read(task_id, faults))
        graph.faults = faults
        return graph

    def changed_on_disk(self, task: Task) -> bool:
        """Whether the file of a task is another than the one it was read from."""
        try:
            return _stamp(os.stat(layout.task_path(self.root, task.id))) != task.stamp
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
                        found[task_id] = _stamp(entry.stat())
        return found

    # Writing: under the lock.

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the lock; yields whether nobody else changed the folder since the last holder let go.

        Raises:
            LockedError: the lock could not be had in time.
            StoreError: the store cannot be written.
        """
        self._lock.acquire()
        self._holding, self._promised = True, {}
        try:
            with self._faults():
                finished = self._finish_journal()
                if self._lock.promised:
                    self._keep_promises(self._lock.promised)
            yield self._lock.undisturbed and not finished
        finally:
            self._holding = False
            self._lock.release()

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
        for promise in promises.parse(block):
            task = self.read(promise.task, graph.faults)
            if task is not None and promise.lay_over(task):
                graph.add(task)
        self._save_each(graph, graph.changed(), "")
        self._lock.note(b"")

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
        with self._faults():
            if gone:
                self._save_whole(graph, pending, by, gone)
            else:
                self._save_each(graph, pending, by)
        for task in pending:
            task.was = None
            graph.dirty.discard(task.id)
        graph.events.clear()

    def save_run(
        self, graph: Graph, by: str, tasks: list[Task], promised: list[Task], hand_over: Callable[[], None]
    ) -> None:
        """The same for a step of a run, in the order that keeps commands busy: history and promises, hand over, files.

        Args:
            graph: the tasks and the events of this step.
            by: the runner.
            tasks: which tasks to write.
            promised: tasks whose starts are promised, and written later.
            hand_over: called when everything that was started is on record.

        Raises:
            StoreError: something cannot be written. What was started is on record even so.
        """
        with self._faults():
            if graph.events:
                self.history.append(graph.events, by, durable=self.durable)
                graph.events.clear()
            if promised or self._lock.noted:
                self._lock.note(promises.block(promised))
            hand_over()
            pending = [task for task in tasks if self._differs(task)]
            self._save_each(graph, pending, by)
        for task in tasks:
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

    def _save_each(self, graph: Graph, tasks: list[Task], by: str) -> None:
        written: list[tuple[str, str, Task, Stamp]] = []
        try:
            for task in tasks:
                self.complete(task)
                target, old = self._target(task.id)
                if not self._catch_up(task, old):
                    graph.drop(task.id)
                    continue
                if self.spares is not None and old is not None:
                    new = self.spares.replace(target, codec.encode(task.data), old)
                    if new is not None:
                        task.stamp = _stamp(new)
                        continue
                temp, stamp = self._beside(target, codec.encode(task.data), old)
                written.append((temp, target, task, stamp))
            if graph.events:
                self.history.append(graph.events, by, durable=self.durable)
        except BaseException:
            for temp, *_ in written:
                with suppress(OSError):
                    os.unlink(temp)
            raise
        for temp, target, task, stamp in written:
            os.replace(temp, target)
            task.stamp = stamp
        if self.durable and written:
            self._sync_folder()

    def _save_whole(self, graph: Graph, tasks: list[Task], by: str, gone: list[int]) -> None:
        files = {}
        for task in tasks:
            if self._catch_up(task, self._target(task.id)[1]):
                files[f"task_{task.id}.json"] = codec.encode(task.data).decode()
        names = [f"task_{i}.json" for i in gone]
        journal = {"files": files, "gone": names, "events": graph.events, "by": by, "size": self.history.size()}
        self.put(_JOURNAL, codec.line_json(journal))
        self._finish_journal()
        for task in tasks:
            task.stamp = _stamp(os.stat(layout.task_path(self.root, task.id)))

    def _finish_journal(self) -> bool:
        """Carry out a change that was written down, if there is one; may be done any number of times."""
        try:
            with open(f"{self.root}/{_JOURNAL}", "rb") as file:
                journal = json.loads(file.read())
        except FileNotFoundError:
            return False
        if journal["events"] and self.history.size() == journal["size"]:
            self.history.append(journal["events"], journal["by"], durable=self.durable)
        for name, text in journal["files"].items():
            self.put(name, text.encode())
        for name in [*journal["gone"], _JOURNAL]:
            with suppress(FileNotFoundError):
                os.unlink(f"{self.root}/{name}")
        self._sync_folder()
        return True

    def _target(self, task_id: int) -> tuple[str, os.stat_result | None]:
        """The file to replace, behind a link if there is one, and what it is now."""
        path = f"{self.root}/task_{task_id}.json"
        try:
            st = os.lstat(path)
            if not stat.S_ISLNK(st.st_mode):
                return path, st
            real = os.path.realpath(path)
            return real, os.stat(real)
        except FileNotFoundError:
            return path, None

    def _catch_up(self, task: Task, old: os.stat_result | None) -> bool:
        """Lay our changes over a file that was saved since it was read; False if it was removed."""
        if old is None:
            return task.stamp is None
        if task.stamp is None:
            raise RefusedError(f"task {task.id} has a file already; nothing was changed", task=task.id)
        if _stamp(old) == task.stamp:
            return True
        fresh = self._read(task.id, codec.decode)
        if fresh is None:
            return False
        self.lay_over(task, fresh)
        return True

    @staticmethod
    def lay_over(task: Task, fresh: Task) -> None:
        """Bring a changed task up to a version that somebody saved in the meantime: only our changed keys go over it."""
        for key, before in (task.was or {}).items():
            after = task.data.get(key, MISSING)
            if key in _EDGES:
                ours, base = after if after is not MISSING else [], before if before is not MISSING else []
                kept = [i for i in fresh.data.get(key, []) if i in ours or i not in base]
                fresh.data[key] = kept + [i for i in ours if i not in base and i not in kept]
            elif after is MISSING:
                fresh.data.pop(key, None)
            else:
                fresh.data[key] = after
        task.data, task.stamp = fresh.data, fresh.stamp

    def _beside(self, target: str, blob: bytes, old: os.stat_result | None) -> tuple[str, Stamp]:
        """Write the bytes to a temporary file beside the target, with its mode and group."""
        folder, name = os.path.split(target)
        temp = f"{folder}/.{name}.tmp"
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            view = memoryview(blob)
            while view:
                view = view[os.write(fd, view) :]
            st = os.fstat(fd)
            if old is not None:
                if (st.st_uid, st.st_gid) != (old.st_uid, old.st_gid):
                    with suppress(OSError):
                        os.fchown(fd, old.st_uid if os.geteuid() == 0 else -1, old.st_gid)
                if st.st_mode != old.st_mode:
                    os.fchmod(fd, stat.S_IMODE(old.st_mode))
            if self.durable:
                os.fsync(fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(temp)
            raise
        finally:
            os.close(fd)
        return temp, _stamp(st)

    def put(self, name: str, blob: bytes) -> None:
        """Replace a file of the folder atomically, its mode kept."""
        path = f"{self.root}/{name}"
        if os.path.islink(path):
            path = os.path.realpath(path)
        old = os.stat(path) if os.path.exists(path) else None
        temp, _ = self._beside(path, blob, old)
        os.replace(temp, path)

    def _sync_folder(self) -> None:
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            path = error.filename if isinstance(error.filename, str) else self.root
            raise StoreError(path, f"cannot be written: {error.strerror or error}; nothing was changed") from None
        except ValueError as error:
            raise StoreError(self.root, f"cannot be written: {error}; nothing was changed") from None

    def allocate(self, count: int = 1) -> list[int]:
        """New ids, never given out before, noted before they are used.

        Raises:
            StoreError: the mark cannot be written.
        """
        high = self.highest_given()
        ids: list[int] = []
        while len(ids) < count:
            high += 1
            if not os.path.lexists(layout.task_path(self.root, high)):
                ids.append(high)
        self.reserve(high)
        return ids

    def reserve(self, high: int) -> None:
        """Note that ids up to this one have been given out."""
        with self._faults():
            self.put(_HIGH, f"{high}\n".encode())

    def highest_given(self) -> int:
        """The highest id ever given out, from the mark or, where that is lost, from what is there."""
        try:
            with open(f"{self.root}/{_HIGH}", encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            return max([*self.ids(), *layout.logged(self.root)], default=0)


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
        for name, text in ((".gitignore", "\n".join(layout.IGNORED) + "\n"), (_HIGH, "")):
            path = f"{root}/{name}"
            if not os.path.exists(path):
                store = Store(root)
                store.put(name, (text or f"{store.highest_given()}\n").encode())
    except FileExistsError:
        raise StoreError(root, "is not a folder, so no store can be made there") from None
    except OSError as error:
        raise StoreError(root, f"cannot be made: {error.strerror}") from None
    return made
