"""The tick of a run: observe, decide, act, wait.

One thread. What follows an attempt is decided by `core.retry`, what is silent by `core.stall`, what starts next by
`core.schedule`; this module carries it out through the `TaskManager` and the executor.
"""

from __future__ import annotations

import itertools
import os
import select
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from taskgraph.core import moves
from taskgraph.core.fields import format_time
from taskgraph.core.flow import settle_in
from taskgraph.core.graph import Event, Graph
from taskgraph.core.limits import Limits, resolve
from taskgraph.core.retry import FREE, INTERRUPTED, LOST, STALLED, Decision
from taskgraph.core.rules import MET, judge
from taskgraph.core.schedule import Frontier
from taskgraph.core.stall import Watch
from taskgraph.core.status import FAILED, HELD, IN_PROGRESS, PENDING, SETTLED
from taskgraph.core.task import Task
from taskgraph.errors import RefusedError, StoreError
from taskgraph.executor.local import Job, LocalExecutor
from taskgraph.executor.records import Exit, Record, held
from taskgraph.manager import TaskManager
from taskgraph.runner import adopt, jobs, outcome
from taskgraph.runner.hold import Presence
from taskgraph.runner.signals import Signals
from taskgraph.runner.watched import GRACE, Watched
from taskgraph.store import layout, promises, signs

_POLL: Final = 0.05
"""Seconds between looks at what other commands did."""

_LOOK: Final = 0.25
"""Seconds between looks at work that has a limit."""

_LATER: Final = 0.4
"""Seconds that a dependent which still waits may be written later."""

_BATCH: Final = 50
"""How many of those are written in one tick."""


class Options(NamedTuple):
    """What a run is asked to do.

    Attributes:
        targets: the tasks to run with all they wait for; None for all.
        slots: how many commands run at a time.
        fail_fast: end at the first failure.
        once: start only what is ready at the beginning.
        wait: also wait for people and agents.
        max_time: seconds after which the run ends; 0 for no limit.
        grace: seconds between asking a process to end and killing it.
    """

    targets: list[int] | None = None
    slots: int = 1
    fail_fast: bool = False
    once: bool = False
    wait: bool = False
    max_time: float = 0.0
    grace: float = GRACE


class Run:
    """One run over a store.

    Args:
        manager: the store.
        options: what is asked for.
        tell: hears every event of this run as it happens, before it is written.
    """

    def __init__(self, manager: TaskManager, options: Options, tell: Callable[[Event], None]) -> None:
        self.manager, self.options, self.tell = manager, options, tell
        self.store, self.root = manager.store, manager.root
        self.watched: dict[int, Watched] = {}
        self.graph = Graph()
        self.attempts = 0
        self.on_tick: Callable[[], None] = lambda: None
        self.reason = ""
        self._survey = adopt.Survey(self.root)
        self._keepers = itertools.count(1)
        self._later: dict[int, float] = {}
        self._promised: dict[int, float] = {}
        self._stopping = False
        self._began = time.monotonic()
        self._foreign = False
        self._next_look = self._next_scan = 0.0
        self._seen = 0
        self._poll = select.poll()

    # The whole run

    def run(self) -> outcome.Outcome:
        """Run to the end.

        Raises:
            StoreError: the store can no longer be read or written; what runs goes on and can be taken up again.
            LockedError: the lock could not be had in time.
        """
        with Signals() as signals, Presence(self.root) as presence, self.store.exchanging(presence.name):
            self._signals, self._presence = signals, presence
            self._poll.register(signals.fd, select.POLLIN)
            self._executor = self._bring_up()
            try:
                self._load()
                self._executor.wait_until_up()
                self._loop()
                self._flush()
            finally:
                self._executor.close()
        self._executor.wait(1.0)
        return self._conclude()

    def _bring_up(self) -> LocalExecutor:
        name = f"{self._presence.name}.{next(self._keepers)}"
        try:
            executor = LocalExecutor(name, layout.keeper_path(self.root, name), os.path.dirname(self.root))
        except OSError as error:
            raise StoreError(self.root, f"no keeper could be started: {error}") from None
        self._poll.register(executor.fd, select.POLLIN)
        return executor

    def _load(self) -> None:
        self.graph = self.manager.reconcile()
        self._settings = self.manager.settings
        self._seen = self.store.history.size()
        self.graph.touched.clear()
        self._survey.clean(self.graph.tasks.values())
        self._logged = layout.logged(self.root)
        targets = self.options.targets
        self.scope = None if targets is None else set(self.graph.closure(targets, down=False))
        self.frontier = Frontier(self.graph, self.scope)
        if any(t.status == IN_PROGRESS and t.owner and t.current for t in self.graph.tasks.values()):
            self._step([], lapse=True)
        self.frontier.offer(self.graph.tasks, time.time(), time.monotonic())
        self._adopt()

    def _loop(self) -> None:
        ended: list[tuple[Watched, Exit]] = []
        first = True
        while True:
            now = time.monotonic()
            self._heed_signals(now)
            ended += self._judge(now)
            self.frontier.due(time.time(), now)
            others = self._others_acted(now)
            may_start = not self._stopping and (first or not self.options.once)
            if ended or others or (may_start and self.frontier.ready and self._free > 0):
                self._step(ended, may_start=may_start)
                ended = []
                first = False
            elif self._next_write() <= now:
                self._step([])
            if self._finished():
                return
            self.on_tick()
            ended += self._wait()

    def _conclude(self) -> outcome.Outcome:
        scope: Iterable[int] = self.graph.tasks if self.scope is None else self.scope
        return outcome.conclude(
            self.graph, sorted(scope), self.options.targets, attempts=self.attempts,
            seconds=time.monotonic() - self._began, signal=self._signals.number, reason=self.reason,
        )  # fmt: skip

    def tally(self) -> tuple[int, int, int]:
        """How many tasks the run is about, how many of them have settled, and how many have failed."""
        ids = self.graph.tasks if self.scope is None else self.scope
        words = [task.status for i in ids if (task := self.graph.tasks.get(i)) is not None]
        return len(words), sum(word in SETTLED for word in words), words.count(FAILED)

    @property
    def _free(self) -> int:
        return self.options.slots - len(self.watched)

    def _finished(self) -> bool:
        """Whether nothing runs and nothing can start without a person."""
        if self.watched or self._executor.backlog:
            return False
        if self._stopping:
            return True
        if self.frontier.ready and not self.options.once:
            return False
        if self.options.once or self.frontier.next_due() < float("inf"):
            return self.options.once
        if self._foreign:
            return False
        return not (self.options.wait and self._somebody_may_act())

    def _somebody_may_act(self) -> bool:
        """Whether a person or an agent could still bring the run forward."""
        for task in self.graph.tasks.values():
            if self.scope is None or task.id in self.scope:
                if task.status in (HELD, IN_PROGRESS):
                    return True
                if task.status == PENDING and task.manual and judge(self.graph, task) == MET:
                    return True
        return False

    # Observe

    def _wait(self) -> list[tuple[Watched, Exit]]:
        """Wait for an end, a signal or the next deadline; returns what ended."""
        now = time.monotonic()
        until = min(self._next_deadline(now), now + _POLL)
        ready = {fd for fd, _ in self._poll.poll(max(0.0, until - now) * 1000)}
        if self._signals.fd in ready:
            self._signals.drain()
        if self._executor.backlog:
            self._executor.flush()
        if self._executor.fd not in ready:
            return []
        exits, alive = self._executor.hear()
        ended = [(w, end) for end in exits if (w := self.watched.get(end.task)) and w.attempt == end.attempt]
        if not alive:
            self._replace_keeper()
        return ended

    def _next_deadline(self, now: float) -> float:
        deadlines = [self.frontier.next_due()]
        for each in self.watched.values():
            deadlines.append(each.deadline if each.outcome else each.watch.seen + each.watch.left)
        deadlines.append(self._next_write())
        if self.options.max_time and not self._stopping:
            deadlines.append(self._began + self.options.max_time)
        return max(now, min(deadlines))

    def _replace_keeper(self) -> None:
        """The keeper was killed: its work is taken over like that of any dead runner, by a new keeper's side."""
        self._poll.unregister(self._executor.fd)
        self._executor.close()
        for each in self.watched.values():
            each.own = False
        self._executor = self._bring_up()
        self._executor.wait_until_up()

    def _heed_signals(self, now: float) -> None:
        self._presence.beat(now)
        count = self._signals.count
        if count and not self._stopping:
            self._stop_all(now, INTERRUPTED)
        if count > 1:
            for each in self.watched.values():
                each.kill(now)
        if self.options.max_time and not self._stopping and now - self._began >= self.options.max_time:
            self.reason = f"the time of {self.options.max_time:g} s is up"
            self._stop_all(now, INTERRUPTED)

    def _stop_all(self, now: float, why: str) -> None:
        self._stopping = True
        for each in self.watched.values():
            each.stop(why, now, self.options.grace)

    def _judge(self, now: float) -> list[tuple[Watched, Exit]]:
        """Look at the work under way: what is over its limit must end, what another runner left may have ended."""
        ended = []
        look = now >= self._next_look
        if look:
            self._next_look = now + _LOOK
        for each in list(self.watched.values()):
            each.press(now)
            if each.end is not None:
                if each.tree_is_gone():
                    ended.append((each, each.end))
                continue
            if look or each.watch.left <= now - each.watch.seen:
                if not each.own and (end := self._end_of_adopted(each, now)):
                    ended.append((each, end))
                    continue
                self._look(each, now)
        return ended

    def _look(self, each: Watched, now: float) -> None:
        watch = each.watch
        if each.outcome or not (watch.timeout or watch.stall_timeout):
            return
        task = self.graph.tasks.get(each.task)
        sign = signs.last(self.root, task, by_work_alone=True) if task is not None and watch.stall_timeout else 0.0
        watch.look(now, _LOOK, sign)
        if watch.verdict:
            self._notice(each, watch.verdict)
            each.stop(watch.verdict, now, self.options.grace)

    def _notice(self, each: Watched, verdict: str) -> None:
        limit = each.watch.stall_timeout if verdict == STALLED else each.watch.timeout
        self.tell(
            {"at": self.manager.now(), "event": verdict, "task": each.task, "attempt": each.attempt, "limit": limit}
        )

    def _end_of_adopted(self, each: Watched, now: float) -> Exit | None:
        alive = each.record.alive
        end = each.record.read().ended.get((each.task, each.attempt))
        if end is not None or alive:
            return end
        if held(layout.log_path(self.root, each.task, each.attempt)):
            # Its keeper is gone, so nobody will ever know how it ended: it must not run beside its successor.
            each.stop(LOST, now, 0.0)
            return None
        return adopt.lost(each.task, each.attempt)

    def _adopt(self) -> None:
        """Take over what dead runners left; notes whether living ones are at work."""
        now = time.monotonic()
        self._foreign = False
        for task in self.graph.tasks.values():
            current = task.current
            if task.status != IN_PROGRESS or current is None or "process" not in current:
                continue
            if task.id in self.watched or (self.scope is not None and task.id not in self.scope):
                continue
            process, number = current["process"], current["number"]
            if self._survey.look(task.id, number, process) == adopt.FOREIGN:
                self._foreign = True
                continue
            record = self._survey.record(process)
            limits = self._limits(task)
            old = adopt.age(record, task.id, number)
            watch = Watch(now, limits.timeout, limits.stall_timeout, old)
            self.watched[task.id] = self._watch(task, number, record, watch, own=False)
            self._next_look = 0.0

    def _limits(self, task: Task) -> Limits:
        return resolve(task, self._settings)

    def _watch(self, task: Task, number: int, record: Record, watch: Watch, *, own: bool) -> Watched:
        return Watched(task.id, number, record, jobs.marks(self.root, task.id, number), watch, own=own)

    def _others_acted(self, now: float) -> bool:
        """Whether other commands wrote to the history, or a look at the files is due for edits by hand."""
        if self.store.history.size() != self._seen:
            return True
        return now >= self._next_scan

    # Act

    def _step(self, ended: list[tuple[Watched, Exit]], *, may_start: bool = False, lapse: bool = False) -> None:
        """One locked step: take in what others did, record what ended, start what can start."""
        graph, now = self.graph, time.monotonic()
        wall = self.manager.clock()
        at = format_time(wall)
        recorded: list[tuple[Exit, Task]] = []
        started: list[Job] = []
        with self.store.locked() as undisturbed:
            self._take_in_others(at, now, undisturbed)
            if lapse:
                self.manager.lapse(graph, list(graph.tasks), at)
            for each, end in ended:
                if self._still_dying(each, end):
                    continue
                self._record(each, end, at, recorded)
            self.frontier.offer(graph.touched, wall, now)
            if may_start and not self._stopping:
                started = self._start_ready(at, now)
            self._save(now, started)
            self._seen = self.store.history.size()
        for end, task in recorded:
            jobs.clear(self.root, end, task)

    def _save(self, now: float, started: list[Job]) -> None:
        """Write what matters now; a start, or a dependent that only waits for one task less, a little later."""
        graph = self.graph
        for event in graph.events:
            self.tell(event)
        urgent = {event["task"] for event in graph.events if "task" in event}
        for job in started[: promises.MOST - len(self._promised)]:
            self._promised[job.task] = now
            urgent.discard(job.task)
        for task_id in graph.dirty - urgent:
            if task_id not in self._promised:
                self._later.setdefault(task_id, now)
        urgent.update(self._overdue(now))
        for task_id in urgent:
            self._later.pop(task_id, None)
            self._promised.pop(task_id, None)
        graph.touched.clear()
        self.store.save_run(
            graph,
            self.manager.by,
            [graph.tasks[i] for i in sorted(urgent & graph.dirty)],
            [graph.tasks[i] for i in self._promised if i in graph.tasks],
            lambda: self._executor.start(started),
        )

    def _overdue(self, now: float) -> list[int]:
        """What was put off for long enough: starts, and a batch of waiting dependents."""
        due = [task_id for task_id, since in self._promised.items() if now - since >= promises.DELAY]
        for task_id, since in itertools.islice(self._later.items(), _BATCH):
            if now - since < _LATER:
                break
            due.append(task_id)
        return due

    def _next_write(self) -> float:
        """The monotonic time at which something that was put off is due."""
        first = [next(iter(put_off.values())) + delay
                 for put_off, delay in ((self._promised, promises.DELAY), (self._later, _LATER)) if put_off]  # fmt: skip
        return min(first, default=float("inf"))

    def _flush(self) -> None:
        """Write everything that was put off."""
        if self.graph.dirty or self._promised:
            with self.store.locked():
                self._later.clear()
                self._promised.clear()
                self.store.save_run(self.graph, self.manager.by, self.graph.changed(), [], lambda: None)

    def _still_dying(self, each: Watched, end: Exit) -> bool:
        """Whether the rest of the tree of an attempt that was made to end is still there; its record waits for it."""
        if not each.outcome or each.end is not None or each.tree_is_gone():
            return False
        each.end = end
        return True

    def _record(self, each: Watched, end: Exit, at: str, recorded: list[tuple[Exit, Task]]) -> None:
        self.watched.pop(each.task, None)
        task = self.graph.tasks.get(each.task)
        current = task.current if task is not None else None
        if each.gone or task is None or current is None or current["number"] != each.attempt:
            return
        if task.status != IN_PROGRESS:
            return
        facts, result = (end.facts, None) if "outcome" in end.facts else jobs.judge(self.root, end)
        if each.outcome and end.at >= each.stopped_at:
            facts = {**facts, "outcome": each.outcome}
        limits = self._limits(task)
        decision = moves.conclude(self.graph, task, at, limits, facts, result)
        self.attempts += 1
        recorded.append((end, task))
        self._heed(decision, facts["outcome"])

    def _heed(self, decision: Decision, ended: str) -> None:
        final = decision.action in ("fail", "stop") and ended not in FREE
        if decision.action == "stop":
            self._stopping = True
            self.reason = "a critical task failed"
        if final and self.options.fail_fast:
            self.reason = self.reason or "a task failed"
            self._stop_all(time.monotonic(), INTERRUPTED)

    def _start_ready(self, at: str, now: float) -> list[Job]:
        started = []
        while self._free > 0 and (task_id := self.frontier.pop()) is not None:
            task = self.graph.tasks[task_id]
            if self.store.changed_on_disk(task):
                self._reload([task_id], at)
                self.frontier.offer([task_id], self.manager.clock(), now)
                continue
            if self._predecessor_lives(task):
                self.frontier.offer_later(task_id, now + _LOOK)
                continue
            try:
                floor = self._logged.get(task_id, 0)
                attempt = moves.start(self.graph, task, at, floor=floor, process=self._executor.name)
            except RefusedError:
                continue
            number = attempt["number"]
            limits = self._limits(task)
            watch = Watch(now, limits.timeout, limits.stall_timeout)
            self.watched[task_id] = self._watch(task, number, self._executor.record, watch, own=True)
            started.append(jobs.build(self.root, self.graph, task, attempt))
        return started

    def _predecessor_lives(self, task: Task) -> bool:
        """Whether something of the last attempt, which others ended, is still there: two copies never overlap."""
        last = task.attempts[-1] if task.attempts else None
        if last is None or "process" not in last or "exitCode" in last or "signal" in last:
            return False
        return held(layout.log_path(self.root, task.id, last["number"]))

    # What others did

    def _take_in_others(self, at: str, now: float, undisturbed: bool) -> None:
        """Under the lock: read again what other commands or editors changed."""
        ids: set[int] = set()
        if self.store.history.size() != self._seen:
            events, self._seen = self.store.history.read(self._seen)
            ids.update(event["task"] for event in events if "task" in event)
        if now >= self._next_scan or not undisturbed:
            before = time.monotonic()
            ids.update(self._changed_files())
            self._settings = self.manager.settings
            self._next_scan = now + max(1.0, 50 * (time.monotonic() - before))
            self._adopt()
        if ids:
            self._reload(sorted(ids), at)

    def _changed_files(self) -> list[int]:
        stamps = self.store.stamps()
        known = self.graph.tasks
        changed = [i for i, stamp in stamps.items() if i not in known or known[i].stamp != stamp]
        return changed + [i for i in known if i not in stamps]

    def _reload(self, ids: list[int], at: str) -> None:
        """Read tasks and the neighbours whose edges changed with them afresh, and bring what is around them into order."""
        graph, queue, seen = self.graph, list(ids), set(ids)
        for task_id in queue:
            old = graph.tasks.get(task_id)
            if old is not None and not self.store.changed_on_disk(old):
                continue
            graph.faults.pop(task_id, None)
            fresh = self.store.read(task_id, graph.faults)
            before = {*old.upstream, *old.blocks} if old is not None else set()
            after = {*fresh.upstream, *fresh.blocks} if fresh is not None else set()
            for other in before ^ after:
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
            self._replace(task_id, old, fresh)
        settle_in(graph, queue, at)
        if self.scope is not None and self.options.targets is not None:
            self.scope.update(graph.closure(self.options.targets, down=False))
        for task_id in queue:
            self._let_go(task_id)

    def _replace(self, task_id: int, old: Task | None, fresh: Task | None) -> None:
        if fresh is None:
            self.graph.drop(task_id)
        elif old is not None and task_id in self._promised and old.current not in fresh.attempts:
            self.store.lay_over(old, fresh)
        else:
            self._promised.pop(task_id, None)
            self.graph.add(fresh)

    def _let_go(self, task_id: int) -> None:
        """End the work of a task that has gone on without it: cancelled, skipped, held, completed or reopened by others."""
        each = self.watched.get(task_id)
        if each is None:
            return
        task = self.graph.tasks.get(task_id)
        current = task.current if task is not None else None
        if task is None or task.status != IN_PROGRESS or current is None or current["number"] != each.attempt:
            each.gone = True
            each.stop(INTERRUPTED, time.monotonic(), self.options.grace)
