"""The tick of a run: observe, decide, act, wait.

One thread. What follows an attempt is decided by `core.retry`, what is silent by `core.stall`, what starts next by
`core.schedule`; this module carries it out through the `TaskManager` and the executor.
"""

from __future__ import annotations

import gc
import itertools
import os
import select
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from taskgraph.core import moves
from taskgraph.core.fields import format_time
from taskgraph.core.graph import Event, Graph
from taskgraph.core.limits import Limits, resolve
from taskgraph.core.retry import FREE, STALLED, Decision
from taskgraph.core.rules import MET, judge
from taskgraph.core.schedule import Frontier
from taskgraph.core.status import FAILED, HELD, IN_PROGRESS, PENDING, SETTLED
from taskgraph.core.task import Task
from taskgraph.errors import RefusedError, StoreError
from taskgraph.executor.local import Job, LocalExecutor
from taskgraph.executor.records import Exit
from taskgraph.manager import TaskManager
from taskgraph.runner import jobs, outcome
from taskgraph.runner.others import Others
from taskgraph.runner.presence import Presence
from taskgraph.runner.signals import Signals
from taskgraph.runner.watched import GRACE, Watched
from taskgraph.runner.watchlist import LOOK, Ended, Watchlist, predecessor_lives
from taskgraph.runner.writer import Writer
from taskgraph.store import layout

_POLL: Final = 0.05
"""Seconds between looks at what other commands did."""

_KEEPERS: Final = 5
"""How many keepers in a row may be killed as they come up."""


@contextmanager
def _calm_memory() -> Iterator[None]:
    """Look for cycles of garbage rarely: a run makes few, and each look at a large graph costs as much as many ticks."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


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
        self._presence = Presence(manager.root)
        self.watched = Watchlist(manager.root, self._presence.name, options.grace, self._tell_now)
        self.graph = Graph()
        self.attempts = 0
        self.on_tick: Callable[[], None] = lambda: None
        self.reason = ""
        self._untold: set[int] = set()
        self._keepers = itertools.count(1)
        self._stopping = self._ending = False
        self._config_fault = ""
        self._began = time.monotonic()
        self._poll = select.poll()

    # The whole run

    def run(self) -> outcome.Outcome:
        """Run to the end.

        Raises:
            StoreError: the store can no longer be read or written; what runs goes on and can be taken up again.
            LockedError: the lock could not be had in time.
        """
        with (
            _calm_memory(),
            Signals() as signals,
            self._presence,
            self.store.exchanging(self._presence.name),
        ):
            self._signals = signals
            self._poll.register(signals.fd, select.POLLIN)
            self._executor = self._bring_up()
            try:
                self._load()
                gc.freeze()
                self._loop()
                with self.store.locked():
                    self._take_in_others(self.manager.now(), time.monotonic(), scan=bool(self.graph.dirty))
                    self.writer.flush()
            except BaseException:
                self._executor.abandon()
                raise
            # Of a task whose file could not be read, only the record knows how its attempt ended.
            self._executor.finish(forget=not self.graph.faults and not self._untold)
            self.watched.clean(self.graph.tasks.values())
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
        seen = self.store.history.mark()
        self.graph = self.manager.reconcile()
        self._settings = self.manager.settings
        self.graph.touched.clear()
        self.watched.clean(self.graph.tasks.values())
        self._logged = layout.logged(self.root)
        targets = self.options.targets
        self.scope = None if targets is None else set(self.graph.closure(targets, down=False))
        self.writer = Writer(self.store, self.graph, self.manager.by)
        self.others = Others(self.store, self.graph, self.writer, seen)
        self.frontier = Frontier(self.graph, self.scope)
        if any(task.status == IN_PROGRESS and task.owner for task in self.graph.tasks.values()):
            with self.store.locked():
                self.manager.lapse(self.graph, list(self.graph.tasks), self.manager.now())
                self.store.save(self.graph, self.manager.by)
        self.frontier.offer(self.graph.tasks, time.time(), time.monotonic())
        self.frontier.closed = self.options.once
        self._adopt(time.monotonic())

    def _adopt(self, now: float) -> None:
        tasks, faults = self.graph.tasks, self.graph.faults
        ids = tasks if self.scope is None else self.scope
        self.watched.adopt([tasks[i] for i in ids if i in tasks and i not in faults], self._limits, now)

    def _loop(self) -> None:
        ended: list[Ended] = []
        while True:
            now = time.monotonic()
            self._heed_signals(now)
            ended += self.watched.found(self.graph.tasks, now)
            self.frontier.due(time.time(), now)
            lapsed = self._lapsed(now)
            may_start = self.frontier.ready and self._free > 0 and not self._stopping
            if ended or lapsed or may_start or self.others.acted(now):
                self._step(ended, lapsed)
                ended = []
            elif self.writer.next_due() <= now:
                self._step()
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
        if self.frontier.ready:
            return False
        if self.options.once or self.frontier.next_due() < float("inf"):
            return self.options.once
        # What another run has started since the last look is to be waited for, and what it left behind to be taken over.
        self._adopt(time.monotonic())
        if self.watched.foreign or self.watched.items or self.others.may_be_back(time.monotonic()):
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

    def _wait(self) -> list[Ended]:
        """Wait for an end, a signal or the next deadline; returns what ended."""
        now = time.monotonic()
        until = min(self._next_deadline(), now + _POLL)
        ready = {fd for fd, _ in self._poll.poll(max(0.0, until - now) * 1000)}
        if self._signals.fd in ready:
            self._signals.drain()
        if self._executor.backlog:
            self._executor.flush()
        if self._executor.fd not in ready:
            return []
        ends, alive = self._executor.hear()
        ended = self.watched.told(ends)
        if not alive:
            self._replace_keeper()
        return ended

    def _next_deadline(self) -> float:
        up = self._began + self.options.max_time if self.options.max_time and not self._ending else float("inf")
        return min(self.frontier.next_due(), self.watched.deadline(), self.writer.next_due(), up)

    def _replace_keeper(self) -> None:
        """The keeper was killed: its work is taken over like that of any dead runner, beside a new keeper."""
        self._poll.unregister(self._executor.fd)
        self._executor.abandon()
        self.watched.lose_keeper()
        self._executor = self._bring_up()

    def _await_keeper(self) -> None:
        """Make sure that a keeper is up; one that was killed as it came up is followed by another, a few times.

        Raises:
            StoreError: none comes up.
        """
        for _ in range(_KEEPERS):
            if self._executor.comes_up():
                return
            self._replace_keeper()
        raise StoreError(
            self._executor.record.path, "no keeper comes up to run commands; see that Python can be started"
        )

    def _heed_signals(self, now: float) -> None:
        self._presence.beat(now)
        count = self._signals.count
        if count and not self._ending:
            self._stop_all(now)
        if count > 1:
            self.watched.kill_all(now)
        if self.options.max_time and not self._ending and now - self._began >= self.options.max_time:
            self.reason = f"the time of {self.options.max_time:g} s is up"
            self._stop_all(now)

    def _stop_all(self, now: float) -> None:
        self._stopping = self._ending = True
        self.watched.stop_all(now)

    def _tell_now(self, event: Event) -> None:
        self.tell({"at": self.manager.now(), **event})

    def _limits(self, task: Task) -> Limits:
        return resolve(task, self._settings)

    # Act

    def _step(self, ended: Sequence[Ended] = (), lapsed: Sequence[tuple[int, int]] = ()) -> None:
        """One locked step: take in what others did, record what ended, start what can start."""
        graph, now = self.graph, time.monotonic()
        wall = self.manager.clock()
        at = format_time(wall)
        recorded: list[tuple[Exit, Task]] = []
        started: list[Job] = []
        with self.store.locked() as undisturbed:
            self._take_in_others(at, now, scan=self.others.scan_due(now) or not undisturbed)
            self._lapse(lapsed, at)
            for each, end in ended:
                if self._still_dying(each, end):
                    continue
                self._record(each, end, at, recorded)
            self.frontier.offer(graph.touched, wall, now)
            fault = None
            try:
                self._start_ready(at, now, started)
            except StoreError as error:
                fault = error
            events = list(graph.events)
            self.writer.commit(
                now, [each.task for each, _ in ended], [job.task for job in started],
                lambda: self._executor.start(started), self._busy,
            )  # fmt: skip
            self.others.wrote()
        for event in events:
            self.tell(event)
        if fault is not None:
            # What ended is on record all the same.
            raise fault
        for end, task in recorded:
            jobs.clear(self.root, end, task)

    def _lapsed(self, now: float) -> list[tuple[int, int]]:
        """The claims whose holders have been silent for too long while this run waited for them."""
        if not self.options.wait:
            return []
        return self.watched.lapsed(self.graph.tasks.values(), self._limits, now)

    def _lapse(self, lapsed: Sequence[tuple[int, int]], at: str) -> None:
        for task_id, number in lapsed:
            task = self.graph.tasks.get(task_id)
            current = task.current if task is not None and task.status == IN_PROGRESS else None
            if task is not None and current is not None and current["number"] == number:
                moves.conclude(self.graph, task, at, self._limits(task), {"outcome": STALLED})

    def _take_in_others(self, at: str, now: float, *, scan: bool) -> None:
        changed = self.others.take_in(at, now, scan=scan)
        if scan:
            self._refresh_settings()
            self._adopt(now)
        if changed and self.scope is not None and self.options.targets is not None:
            self.scope.update(self.graph.closure(self.options.targets, down=False))
        for task_id in changed:
            self.watched.let_go(task_id, self.graph.tasks.get(task_id), now)

    def _refresh_settings(self) -> None:
        """Take in a changed `config.toml`; while it cannot be read, what held before goes on to hold."""
        try:
            self._settings, fault = self.manager.settings, ""
        except StoreError as error:
            fault = error.message
        if fault and fault != self._config_fault:
            self._tell_now({"event": "warning", "text": f"{fault}; what it said before goes on to hold"})
        self._config_fault = fault

    def _busy(self) -> bool:
        """Whether something has ended or a signal has come while files are written."""
        return bool(self._poll.poll(0))

    def _still_dying(self, each: Watched, end: Exit) -> bool:
        """Whether the rest of the tree of an attempt that was made to end is still there; its record waits for it."""
        if not each.outcome or each.end is not None or each.tree_is_gone():
            return False
        each.end = end
        return True

    def _record(self, each: Watched, end: Exit, at: str, recorded: list[tuple[Exit, Task]]) -> None:
        self.watched.drop(each.task)
        self.others.look_at(each.task, at, time.monotonic())
        if each.task in self.graph.faults:
            # Nothing can be written into a file that cannot be read; the keeper's record tells the next look, or run.
            self._untold.add(each.task)
            return
        task = self.graph.tasks.get(each.task)
        current = task.current if task is not None else None
        if each.gone or task is None or current is None or current["number"] != each.attempt:
            return
        if task.status != IN_PROGRESS:
            return
        facts, result = (dict(end.facts), None) if "outcome" in end.facts else jobs.judge(self.root, end)
        if each.outcome and end.at >= each.stopped_at:
            facts = {**facts, "outcome": each.outcome}
        facts["finishedAt"] = min(at, format_time(end.at))
        limits = self._limits(task)
        decision = moves.conclude(self.graph, task, at, limits, facts, result)
        self._untold.discard(each.task)
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
            self._stop_all(time.monotonic())

    def _start_ready(self, at: str, now: float, started: list[Job]) -> None:
        """Start what is ready while there are slots, adding the jobs to those that are started."""
        if self._stopping or not self.frontier.ready or self._free <= 0:
            return
        self._await_keeper()
        while self._free > 0 and (task_id := self.frontier.pop()) is not None:
            task = self.graph.tasks[task_id]
            if not self.others.look_at(task_id, at, now):
                self.frontier.offer([task_id], self.manager.clock(), now)
                continue
            floor = layout.highest_log(self.root, task, self._logged.get(task_id, 0))
            if task_id in self.watched.items or predecessor_lives(self.root, task, floor):
                self.frontier.offer_later(task_id, now + LOOK)
                continue
            number = moves.next_number(task, floor)
            job = jobs.build(self.root, self.graph, task, number)
            try:
                moves.start(self.graph, task, at, floor=floor, waited=True, process=self._executor.name)
            except RefusedError:
                continue
            self._logged[task_id] = number
            self.watched.add(task_id, number, self._executor.record, self._limits(task), now)
            started.append(job)
