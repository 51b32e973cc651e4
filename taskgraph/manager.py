"""TaskManager: the only writer of tasks.

Each method is one locked step: take the lock, read what it will change, change it by the pure rules of `core`, write, let go.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from taskgraph.access import OpenStore
from taskgraph.core import edit, moves, retry
from taskgraph.core.edit import Edges, Ref, Refs, id_of, resolve, several
from taskgraph.core.fence import ANYBODY, Caller, check
from taskgraph.core.graph import Graph
from taskgraph.core.schedule import claimable
from taskgraph.core.status import CANCELLED, COMPLETED, FAILED, HELD, IN_PROGRESS, PENDING, SKIPPED
from taskgraph.core.task import Task
from taskgraph.errors import NothingToDo, RefusedError, StoreError, UsageError
from taskgraph.store import files, layout, signs

Tasks = list[Task]


class TaskManager(OpenStore):
    """Reads and changes the tasks of one store.

    It is opened as `OpenStore` says.
    """

    @classmethod
    def init(cls, where: str | os.PathLike[str] = ".", **options: Any) -> TaskManager:
        """Make a store where there is none, and open it.

        Args:
            where: the folder that is to hold ``.tasks``, or a ``.tasks`` folder.
            **options: as for the class.

        Raises:
            StoreError: it cannot be made.
        """
        root = layout.expected(os.fspath(where), os.getcwd())
        files.make(root)
        return cls(root, **options)

    # Making and describing tasks

    def create(
        self,
        subject: str,
        *,
        blocked_by: Refs = (),
        blocks: Refs = (),
        exist_ok: bool = False,
        **fields: Any,
    ) -> Task:
        """Make a task.

        Args:
            subject: what is to be done, in a line.
            blocked_by: tasks it waits for.
            blocks: tasks that wait for it.
            exist_ok: return the task that has the name already instead of refusing.
            **fields: further fields, in snake_case or by their JSON names.

        Raises:
            UsageError: a field holds what it must not, or an edge would close a cycle.
            NotFoundError: a task it names does not exist.
            RefusedError: another task has the name.
        """
        values = {"subject": subject, **edit.by_json_name(fields)}
        edges = Edges(add_blocked_by=several(blocked_by), add_blocks=several(blocks))

        def act(graph: Graph) -> Task:
            twin = edit.claim_name(graph, values.get("name"))
            if twin is None:
                return edit.create(graph, self.store.allocate, values, edges, self.now())
            if exist_ok:
                return twin
            raise edit.name_taken(twin)

        # A new task that only waits can close no cycle: its upstreams are all there is to read.
        named = any(id_of(ref) is None for ref in edges.add_blocked_by)
        return self.change(act, whole=bool(edges.add_blocks or values.get("name") or named))

    def update(
        self,
        ref: Ref,
        *,
        edges: Edges = Edges(),  # noqa: B008
        add_notes: Iterable[str] = (),
        add_labels: Iterable[str] = (),
        metadata: dict[str, Any] | None = None,
        unset: Iterable[str] = (),
        **fields: Any,
    ) -> Task:
        """Change the description, the edges or the limits of a task; its status has verbs of its own.

        Args:
            ref: the task.
            edges: edges to draw and to take away.
            add_notes: notes to append.
            add_labels: labels to add.
            metadata: keys to set in ``metadata``.
            unset: fields to take out, by their JSON names.
            **fields: further fields, in snake_case or by their JSON names.

        Raises:
            UsageError: a field holds what it must not, or an edge would close a cycle.
            NotFoundError: a task it names does not exist, or an edge to take away is not there.
            RefusedError: another task has the name.
        """
        values = edit.by_json_name(fields)
        notes, labels = list(add_notes), list(add_labels)

        def act(graph: Graph) -> Task:
            task = self._fresh(graph, ref)
            said = dict(values)
            if notes:
                said["notes"] = [*task.notes, *notes]
            if labels:
                said["labels"] = list(dict.fromkeys([*task.labels, *labels]))
            if metadata:
                said["metadata"] = {**task.metadata, **metadata}
            edit.update(graph, task, said, list(unset), edges, self.now())
            return task

        whole = edges.need_everything() or "name" in values or id_of(ref) is None
        return self.change(act, whole=whole)

    def delete(self, refs: Refs, *, force: bool = False, cascade: bool = False) -> tuple[list[int], list[int]]:
        """Delete tasks: all of them or none.

        Args:
            refs: the tasks.
            force: unlink what depends on them.
            cascade: delete what depends on them too.

        Returns:
            the ids that are gone, and the ids of those that no longer wait for them.

        Raises:
            RefusedError: others depend on a task, or it is in progress.
        """

        def act(graph: Graph) -> tuple[list[int], list[int]]:
            chosen = [resolve(graph, ref).id for ref in several(refs)]
            below = {down for task_id in chosen for down in graph.tasks[task_id].blocks}
            gone = edit.delete(graph, chosen, self.now(), force=force, cascade=cascade)
            self.store.save(graph, self.by, gone=gone)
            return gone, sorted(i for i in below if graph.get(i) is not None)

        return self.change(act, whole=True)

    # Work by people and agents

    def claim(self, ref: Ref | None, owner: str, *, worker: str = "", force: bool = False) -> Task:
        """Take a task to work on: the one named, else the best that is ready.

        A claim whose holder has given no sign of life for its limit lapses first, and is there to be claimed.

        Args:
            ref: a task, or None for the best manual task (or task of ``worker``) that is ready.
            owner: who takes it.
            worker: take tasks of this worker.
            force: take it although it is blocked.

        Returns:
            the task, in progress; the number of its last attempt is the fence that reports carry.

        Raises:
            RefusedError: somebody works on it, or it is not ready.
            NothingToDo: no task is ready.
        """
        if not owner:
            raise UsageError("a claim needs an owner: give --owner NAME or set TASKGRAPH_OWNER")

        def act(graph: Graph) -> Task:
            at = self.now()
            self.lapse(graph, [resolve(graph, ref).id] if ref is not None else list(graph.tasks), at)
            if ref is not None:
                task = self._fresh(graph, ref)
                if task.status == PENDING and task.manual and task.owner not in ("", owner) and not force:
                    raise RefusedError(f"{task.title} is reserved for {task.owner}", task=task.id, owner=task.owner)
            else:
                best = claimable(graph, self.clock(), owner, worker)
                if best is None:
                    raise NothingToDo("no task is ready to be claimed" + (f" for worker {worker}" if worker else ""))
                task = best
            moves.start(
                graph, task, at, floor=layout.highest_log(self.root, task), force=force, owner=owner, worker=worker
            )
            signs.touch(self.root, task.id, task.attempts[-1]["number"])
            return task

        return self.change(act, whole=ref is None or id_of(ref) is None)

    def lapse(self, graph: Graph, ids: Iterable[int], at: str) -> None:
        """End the claims among these tasks whose holders are silent for longer than their limit."""
        clock: float | None = None
        for task_id in ids:
            task = graph.get(task_id)
            if task is None or task.status != IN_PROGRESS or not task.owner or task.runs:
                continue
            limits = self.limits(task)
            clock = signs.clock(self.root) if clock is None else clock
            if clock - signs.last(self.root, task, by_work_alone=True) > (limits.stall_timeout or limits.lease):
                moves.conclude(graph, task, at, limits, {"outcome": retry.STALLED})

    def heartbeat(self, ref: Ref, caller: Caller) -> Task:
        """Give a sign of life for a task in progress; takes no lock.

        Raises:
            RefusedError: the task is not in progress, or is somebody else's.
        """
        _, task = self.look(ref)
        current = task.current
        if task.status != IN_PROGRESS or current is None:
            raise RefusedError(f"{task.title} is {task.status}: nothing to beat for", task=task.id)
        if caller.attempt is not None or "process" not in current:
            check(task, caller)
        self._beat(task)
        return task

    def _beat(self, task: Task) -> None:
        current = task.current
        if current is not None:
            try:
                signs.touch(self.root, task.id, current["number"])
            except OSError as error:
                raise StoreError(f"{self.root}/run", f"cannot be written: {error.strerror}") from None

    def complete(self, ref: Ref, caller: Caller = ANYBODY, *, result: Any = None) -> Task:
        """Complete a task; everything that waits for it is told in the same step.

        Raises:
            RefusedError: it is blocked, or somebody else works on it.
        """

        def act(graph: Graph, task: Task) -> Task:
            check(task, caller)
            moves.complete(graph, task, self.now(), result=result, force=caller.force)
            return task

        return self.each([ref], act)[0]

    def fail(self, ref: Ref, caller: Caller = ANYBODY, *, reason: str = "") -> Task:
        """Report that a task failed; an attempt under way may be followed by another.

        Raises:
            RefusedError: somebody else works on it.
        """

        def act(graph: Graph, task: Task) -> Task:
            check(task, caller)
            moves.fail(graph, task, self.now(), self.limits(task), reason)
            return task

        return self.each([ref], act)[0]

    def release(self, refs: Refs, caller: Caller = ANYBODY, *, reason: str = "") -> Tasks:
        """Give tasks back: claimed ones at no cost, held ones to go on.

        Raises:
            RefusedError: a task is neither, or somebody else works on it.
        """

        def act(graph: Graph, task: Task) -> Task:
            if task.status == IN_PROGRESS:
                check(task, caller)
            moves.release(graph, task, self.now(), reason)
            return task

        return self.each(refs, act)

    def begin(self, ref: Ref, owner: str = "", *, force: bool = False) -> Task:
        """Start a task by a person's word, without a lease; one under way stays so.

        Raises:
            RefusedError: it is blocked or settled, or somebody else works on it.
        """

        def act(graph: Graph, task: Task) -> Task:
            if task.status != IN_PROGRESS or (owner and task.owner and owner != task.owner):
                moves.start(
                    graph, task, self.now(), floor=layout.highest_log(self.root, task), force=force, owner=owner
                )
            return task

        return self.each([ref], act)[0]

    # Decisions of people

    def skip(self, refs: Refs, reason: str = "") -> Tasks:
        """Waive tasks: what depends on them goes on."""
        return self._put_aside(refs, SKIPPED, reason)

    def cancel(self, refs: Refs, reason: str = "") -> Tasks:
        """Cancel tasks: what depends on them does not go on."""
        return self._put_aside(refs, CANCELLED, reason)

    def hold(self, refs: Refs, reason: str = "") -> Tasks:
        """Hold tasks: they wait for a person.

        Raises:
            RefusedError: a task has settled.
        """
        return self._put_aside(refs, HELD, reason)

    def _put_aside(self, refs: Refs, to: str, reason: str) -> Tasks:
        def act(graph: Graph, task: Task) -> Task:
            if to == HELD and moves.settled(task):
                raise RefusedError(f"{task.title} is {task.status}; reopen it to have it done again", task=task.id)
            moves.put_aside(graph, task, self.now(), to, reason)
            return task

        return self.each(refs, act)

    def reopen(self, refs: Refs, *, failed: bool = False, downstream: bool = False) -> tuple[Tasks, list[int]]:
        """Begin new visits of tasks.

        Args:
            refs: the tasks.
            failed: also every failed task.
            downstream: also what completed or failed below them.

        Returns:
            the tasks, and the ids of those below that keep going and are now stale.

        Raises:
            RefusedError: a task is in progress.
        """

        named = several(refs)

        def act(graph: Graph) -> tuple[Tasks, list[int]]:
            chosen = [resolve(graph, ref) for ref in named]
            if failed:
                chosen += [t for t in graph.tasks.values() if t.status == FAILED and t not in chosen]
            at = self.now()
            stale = [i for task in chosen for i in moves.reopen(graph, task, at, downstream=downstream)]
            return chosen, sorted(set(stale) - {task.id for task in chosen})

        return self.change(act, whole=failed or downstream or any(id_of(ref) is None for ref in named))

    def set_status(self, ref: Ref, status: str, caller: Caller = ANYBODY) -> tuple[Task, list[int]]:
        """Bring a task into a status by the verb that leads there.

        Returns:
            the task, and the ids of those that are stale now, as `reopen` gives them.

        Raises:
            RefusedError: the verb refuses.
        """
        if status == COMPLETED:
            return self.complete(ref, caller), []
        if status == IN_PROGRESS:
            return self.begin(ref, caller.owner, force=caller.force), []
        if status == FAILED:
            return self.fail(ref, caller), []
        if status != PENDING:
            return self._put_aside([ref], status, "")[0], []
        if self.get(ref).status == IN_PROGRESS:
            return self.release([ref], caller)[0], []
        tasks, stale = self.reopen([ref])
        return tasks[0], stale

    def list(self) -> Tasks:
        """Every task that can be read, by id; reads nothing but the store, and writes nothing."""
        return [*self.snapshot().tasks.values()]
