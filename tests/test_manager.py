"""TaskManager: any sequence of operations, by any number of processes and by hand, keeps what a store promises."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from taskgraph import Caller, TaskManager
from taskgraph.core.edit import Edges
from taskgraph.core.fields import TRIGGER_RULES
from taskgraph.core.rules import readiness
from taskgraph.core.task import normalise
from taskgraph.errors import (
    EXIT_NOT_FOUND,
    CycleError,
    NotFoundError,
    NothingToDo,
    RefusedError,
    StoreError,
    TaskgraphError,
    UsageError,
)
from taskgraph.store import files, layout

Data = dict[int, dict[str, Any]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The ``.tasks`` folder of an empty store."""
    files.make(str(tmp_path / ".tasks"))
    return tmp_path / ".tasks"


@pytest.fixture
def boss(root: Path) -> TaskManager:
    """The manager of an empty store."""
    return TaskManager(root, by="ann", durable=False)


def on_disk(root: Path) -> Data:
    """Every task file, read with nothing but `json`."""
    return {int(p.stem[5:]): json.loads(p.read_bytes()) for p in sorted(root.glob("task_*.json"))}


# A small slow oracle, written from the rules alone.

SETTLED = ("completed", "failed", "skipped", "cancelled")
SUCCESS, FAILURE, PASSED, NEITHER, OPEN = "SFPNO"
FULFILLED: dict[str, Callable[[tuple[str, ...]], bool]] = {
    "all_success": lambda said: all(s == SUCCESS for s in said),
    "all_done": lambda said: True,
    "none_failed": lambda said: FAILURE not in said,
    "none_failed_min_one_success": lambda said: FAILURE not in said and SUCCESS in said,
    "one_success": lambda said: SUCCESS in said,
    "one_failed": lambda said: FAILURE in said,
}


class Oracle:
    """What the rules say about a store, from its files; tries every way in which what is open might end."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.ups: dict[int, set[int]] = {
            i: {*d.get("blockedBy", []), *d.get("unblockedBy", [])} for i, d in data.items()
        }
        for i, d in data.items():
            for down in d.get("blocks", []):
                if down in self.ups:
                    self.ups[down].add(i)
        self.known: dict[int, tuple[str, list[int]]] = {}

    def ends(self, task_id: int) -> tuple[str, list[int]]:
        """The status of a task, and the causes of what a cascade ended."""
        if task_id not in self.known:
            self.known[task_id] = self._ends(task_id)
        return self.known[task_id]

    def _ends(self, task_id: int) -> tuple[str, list[int]]:
        data = self.data[task_id]
        status = data.get("status", "pending")
        if status != "pending" and not data.get("cause"):
            return status, []
        said = {up: self.says(up) for up in self.ups[task_id]}
        fulfilled = FULFILLED[data.get("triggerRule", "all_success")]
        ways = itertools.product(*(("SFPN" if s == OPEN else s) for s in said.values()))
        if not said or any(fulfilled(way) for way in ways):
            return "pending", []
        culprits = [up for up, s in said.items() if s in (FAILURE, NEITHER)]
        if culprits:
            return "cancelled", sorted(culprits)
        return "skipped", sorted([up for up, s in said.items() if s == PASSED] or said)

    def says(self, up: int) -> str:
        """What the edge from an upstream says."""
        if up not in self.data:
            return OPEN
        status, cause = self.ends(up)
        if status not in SETTLED:
            return OPEN
        if status == "skipped":
            return PASSED if cause else SUCCESS
        if status == "cancelled":
            return FAILURE if cause else NEITHER
        return SUCCESS if status == "completed" else FAILURE

    def ready(self, task_id: int) -> bool:
        """Whether a task may start."""
        if self.ends(task_id)[0] != "pending":
            return False
        said = tuple(self.says(up) for up in self.ups[task_id])
        name = self.data[task_id].get("triggerRule", "all_success")
        return not said or ((OPEN not in said or name.startswith("one_")) and FULFILLED[name](said))


ID = st.integers(1, 9)
IDS = st.lists(ID, max_size=3, unique=True)


class AnyHistory(RuleBasedStateMachine):
    """People, programs and editors at work on one store, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="taskgraph-"))
        self.root = self.folder / ".tasks"
        files.make(str(self.root))
        self.second = 0
        self.boss = TaskManager(self.root, by="ann", durable=False, clock=self._clock)
        self.tidy = True
        self.given: set[int] = set()
        self.own: dict[int, str] = {}

    def _clock(self) -> float:
        self.second += 1
        return 1_700_000_000 + self.second

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @contextmanager
    def refusable(self) -> Iterator[None]:
        """What is refused has changed no task file."""
        before = {p.name: p.read_bytes() for p in self.root.glob("task_*.json")}
        try:
            yield
        except (RefusedError, UsageError, NotFoundError, NothingToDo):
            assert {p.name: p.read_bytes() for p in self.root.glob("task_*.json")} == before

    # Commands

    @initialize(rules=st.lists(st.sampled_from(TRIGGER_RULES), min_size=3, max_size=3))
    def begin(self, rules: list[str]) -> None:
        """Three tasks, the last waiting for the others."""
        for n, name in enumerate(rules):
            self.create(ups=[1, 2] if n == 2 else [], downs=[], name=name)

    @rule(ups=IDS, downs=IDS, name=st.sampled_from(TRIGGER_RULES))
    def create(self, ups: list[int], downs: list[int], name: str) -> None:
        if len(list(self.root.glob("task_*.json"))) >= 7:
            return
        with self.refusable():
            task = self.boss.create("new", blocked_by=ups, blocks=downs, trigger_rule=name)
            assert task.id not in self.given, "an id was given out twice"
            self.given.add(task.id)

    @rule(task=ID, add=IDS, remove=IDS, down=st.booleans())
    def draw_and_take_away(self, task: int, add: list[int], remove: list[int], down: bool) -> None:
        edges = Edges((), (), tuple(add), tuple(remove)) if down else Edges(tuple(add), tuple(remove))
        with self.refusable():
            self.boss.update(task, edges=edges, add_notes=["n"])

    @rule(task=ID, force=st.booleans())
    def complete(self, task: int, force: bool) -> None:
        with self.refusable():
            self.boss.complete(task, Caller(force=force), result={"n": task})

    @rule(task=ID)
    def fail(self, task: int) -> None:
        with self.refusable():
            self.boss.fail(task, Caller("bob"), reason="broken")

    @rule(task=ID, downstream=st.booleans(), failed=st.booleans())
    def reopen(self, task: int, downstream: bool, failed: bool) -> None:
        with self.refusable():
            self.boss.reopen([task], failed=failed, downstream=downstream)

    @rule(tasks=st.lists(ID, min_size=1, max_size=2, unique=True), verb=st.sampled_from(["skip", "cancel", "hold"]))
    def put_aside(self, tasks: list[int], verb: str) -> None:
        with self.refusable():
            getattr(self.boss, verb)(tasks, "because")

    @rule(task=ID)
    def release(self, task: int) -> None:
        with self.refusable():
            self.boss.release([task], Caller("bob"))

    @rule(task=st.none() | ID, force=st.booleans())
    def claim(self, task: int | None, force: bool) -> None:
        with self.refusable():
            self.boss.claim(task, "bob", force=force and task is not None)

    @rule(tasks=st.lists(ID, min_size=1, max_size=2, unique=True), how=st.sampled_from(["", "force", "cascade"]))
    def delete(self, tasks: list[int], how: str) -> None:
        with self.refusable():
            gone, _ = self.boss.delete(tasks, force=how == "force", cascade=how == "cascade")
            for i in gone:
                self.own.pop(i, None)

    # Edits by hand

    def _edit(self, task: int, in_place: bool, **values: Any) -> None:
        path = self.root / f"task_{task}.json"
        if not path.exists():
            return
        data = {**json.loads(path.read_bytes()), **values}
        self.tidy = False
        if in_place:
            path.write_text(json.dumps(data))
            return
        (self.root / "draft").write_text(json.dumps(data))
        os.replace(self.root / "draft", path)

    @rule(task=ID, in_place=st.booleans(), status=st.sampled_from(["Pending", *SETTLED, "held"]))
    def type_a_status(self, task: int, in_place: bool, status: str) -> None:
        self._edit(task, in_place, status=status, cause=None)

    @rule(
        task=ID, in_place=st.booleans(), up=st.integers(0, 8) | st.just(99),
        listed=st.sampled_from(["blockedBy", "unblockedBy"]),
    )  # fmt: skip
    def type_one_side_of_an_edge(self, task: int, in_place: bool, up: int, listed: str) -> None:
        if up != 99 and not 0 < up < task:
            return
        if up in self._above_or_below(task):
            return
        self._edit(task, in_place, **{listed: f"#{up}"})

    def _above_or_below(self, task: int) -> set[int]:
        """What lies below a task already: an edge from there would close a cycle by hand."""
        data = on_disk(self.root)
        ups = Oracle(_normal(data)).ups
        below, queue = {task}, [task]
        for here in queue:
            for other in ups:
                if here in ups[other] and other not in below:
                    below.add(other)
                    queue.append(other)
        return below

    @rule(task=ID, in_place=st.booleans(), text=st.text(max_size=4))
    def type_a_field_of_ones_own(self, task: int, in_place: bool, text: str) -> None:
        if (self.root / f"task_{task}.json").exists():
            self._edit(task, in_place, **{"x-own": text})
            self.own[task] = text

    @rule(task=ID)
    def remove_a_file(self, task: int) -> None:
        path = self.root / f"task_{task}.json"
        if path.exists():
            path.unlink()
            self.own.pop(task, None)
            self.tidy = False
            if int((self.root / ".highwatermark").read_text()) < task:
                # It came and went by hand before any writer looked: nothing tells that the id was ever used.
                self.given.discard(task)

    @rule(task=st.integers(1, 9))
    def make_a_file(self, task: int) -> None:
        path = self.root / f"task_{task}.json"
        if not path.exists() and task not in self.given:
            path.write_text(f'{{"subject": "by hand", "blockedBy": {[i for i in (1, 2) if i < task]}}}')
            self.given.add(task)
            self.tidy = False

    @rule()
    def bring_into_order(self) -> None:
        self.boss.reconcile()
        self.tidy = True
        snapshot = self.boss.snapshot()
        assert {i: t.data for i, t in snapshot.tasks.items()} == {
            i: {**normalise(d), "id": i} for i, d in on_disk(self.root).items()
        }
        before = {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in self.root.glob("task_*.json")}
        events = self.boss.store.history.size()
        self.boss.reconcile()
        assert {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in self.root.glob("task_*.json")} == before
        assert self.boss.store.history.size() == events

    # What holds at any time

    @invariant()
    def every_view_says_what_the_rules_say(self) -> None:
        oracle = Oracle(_normal(on_disk(self.root)))
        snapshot = self.boss.snapshot()
        assert snapshot.faults == {}
        for i, task in snapshot.tasks.items():
            status, cause = oracle.ends(i)
            assert (task.status, sorted(task.cause)) == (status, cause), f"task {i}"
            ready = readiness(snapshot, task, self._clock()).state == "ready"
            assert ready is oracle.ready(i), f"task {i}"
            assert set(task.blocked_by) == {u for u in oracle.ups[i] if oracle.says(u) == OPEN}
            assert set(task.upstream) == oracle.ups[i]

    @invariant()
    def nothing_is_lost(self) -> None:
        data = on_disk(self.root)
        assert {i: data[i].get("x-own") for i in self.own} == self.own
        names = sorted(p.name for p in self.root.iterdir())
        assert not [n for n in names if n.endswith(".tmp") or n == ".journal"]

    @invariant()
    @precondition(lambda self: self.tidy)
    def the_files_are_in_order(self) -> None:
        data = {i: normalise(d) for i, d in on_disk(self.root).items()}
        for i, task in data.items():
            ups = [*task.get("blockedBy", []), *task.get("unblockedBy", [])]
            assert len(set(ups)) == len(ups)
            for up in ups:
                if up in data:
                    assert i in data[up]["blocks"]
                    assert (up in task.get("blockedBy", [])) is (data[up].get("status") not in SETTLED)
            for down in task.get("blocks", []):
                if down in data:
                    assert i in [*data[down].get("blockedBy", []), *data[down].get("unblockedBy", [])]
            assert {**task, "id": i} == self.boss.get(i).data

    @invariant()
    def events_count_up(self) -> None:
        events, _ = self.boss.store.history.read()
        assert [e["id"] for e in events] == list(range(1, len(events) + 1))


def _normal(data: Data) -> Data:
    """The few forms that the editors of this test use, brought into one."""
    for task in data.values():
        task["status"] = str(task.get("status", "pending")).lower()
        for key in ("blockedBy", "unblockedBy"):
            if isinstance(value := task.get(key, []), str):
                task[key] = [int(value.lstrip("#"))]
    return data


def test_any_history_keeps_what_a_store_promises() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        AnyHistory,
        settings=settings(
            max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.mark.slow
def test_any_history_keeps_what_a_store_promises_for_long() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        AnyHistory,
        settings=settings(
            max_examples=800, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


# Reading by id


@pytest.fixture
def wide(boss: TaskManager, monkeypatch: pytest.MonkeyPatch) -> tuple[TaskManager, list[int]]:
    """1 → 2 → 3 among forty others, and the ids of the files that are read from here on."""
    boss.create("T1")
    boss.create("T2", blocked_by=[1])
    boss.create("T3", blocked_by=[2])
    for _ in range(40):
        boss.create("other")
    reads: list[int] = []
    real = files.Store._read_file

    def counted(self: files.Store, task_id: int, *rest: Any) -> Any:
        reads.append(task_id)
        return real(self, task_id, *rest)

    monkeypatch.setattr(files.Store, "_read_file", counted)
    return boss, reads


@pytest.mark.parametrize(
    ("act", "near"),
    [
        (lambda b: b.get(2), {1, 2, 3}),
        (lambda b: b.get("#2"), {1, 2, 3}),
        (lambda b: b.update(2, owner="ann", add_notes=["x"]), {1, 2, 3}),
        (lambda b: b.complete(1), {1, 2}),
        (lambda b: b.cancel([1]), {1, 2, 3}),
        (lambda b: b.claim(1, "bob"), {1, 2}),
        (lambda b: b.hold([2]), {1, 2, 3}),
        (lambda b: b.create("new"), set()),
        (lambda b: b.create("new", blocked_by=[3]), {3}),
        (lambda b: b.update(2, edges=Edges(remove_blocked_by=(1,))), {1, 2, 3}),
    ],
)
def test_a_command_that_names_a_task_by_id_reads_its_neighbours_alone(
    wide: tuple[TaskManager, list[int]], act: Callable[[TaskManager], object], near: set[int]
) -> None:
    boss, reads = wide
    act(boss)
    assert set(reads) <= near
    assert len(reads) == len(set(reads)), "each file once"


def test_a_command_by_id_never_opens_a_file_that_would_keep_it_waiting(boss: TaskManager, root: Path) -> None:
    """A pipe in the place of another task's file: whoever opened it would wait for ever."""
    boss.create("T1")
    boss.create("T2")
    os.mkfifo(root / "task_3.json")
    with boss.store.locked():
        pass
    done = threading.Event()

    def work() -> None:
        boss.get(1)
        boss.update(1, owner="ann")
        boss.complete(1)
        boss.create("new")
        done.set()

    threading.Thread(target=work, daemon=True).start()
    assert done.wait(10)


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "replaced"])
@pytest.mark.parametrize(
    ("before", "typed", "state", "claimed"),
    [("completed", "pending", "blocked", False), ("completed", "failed", "cancelled", False),
     ("pending", "completed", "ready", True), ("failed", "completed", "ready", True)],
)  # fmt: skip
def test_a_hand_edit_of_a_direct_upstream_is_seen_by_id_as_in_every_view(
    boss: TaskManager, root: Path, in_place: bool, before: str, typed: str, state: str, claimed: bool
) -> None:
    boss.create("T1")
    boss.create("T2", blocked_by=[1])
    if before != "pending":
        boss.set_status(1, before)
    path = root / "task_1.json"
    text = json.dumps({**json.loads(path.read_bytes()), "status": typed})
    if in_place:
        path.write_text(text)
    else:
        (root / "draft").write_text(text)
        os.replace(root / "draft", path)
    graph, task = boss.look(2)
    assert readiness(graph, task, boss.clock()).state == state
    whole = boss.snapshot()
    assert readiness(whole, whole.tasks[2], boss.clock()).state == state
    assert (task.blocked_by, task.unblocked_by) == (whole.tasks[2].blocked_by, whole.tasks[2].unblocked_by)
    if claimed:
        assert boss.claim(2, "bob").status == "in_progress"
    else:
        with pytest.raises(RefusedError):
            boss.claim(2, "bob")


# The verbs, as the command line uses them


def test_the_first_example_that_anybody_tries(boss: TaskManager, root: Path) -> None:
    for subject in ("Setup project", "Write code", "Write tests"):
        boss.create(subject)
    boss.update(2, edges=Edges(add_blocked_by=(1,)))
    boss.update(3, edges=Edges(add_blocked_by=(2,)))
    assert [(d["blockedBy"], d["blocks"]) for d in on_disk(root).values()] == [([], [2]), ([1], [3]), ([2], [])]
    boss.set_status(1, "completed")
    data = on_disk(root)
    assert (data[2]["blockedBy"], data[2]["unblockedBy"], data[3]["blockedBy"]) == ([], [1], [2])
    with pytest.raises(CycleError, match="1 → 2 → 3 → 1"):
        boss.update(1, edges=Edges(add_blocked_by=(3,)))
    assert on_disk(root) == data


def test_a_hand_written_file_is_treated_right_and_completed_by_the_next_writer(boss: TaskManager, root: Path) -> None:
    boss.create("T1")
    (root / "task_7.json").write_text('{"id": 7, "subject": "by hand", "blockedBy": "1"}')
    assert boss.get(7).blocked_by == [1]
    assert [t.id for t in boss.list()] == [1, 7]
    assert on_disk(root)[1]["blocks"] == []
    boss.create("T8")
    assert on_disk(root)[1]["blocks"] == [7]
    assert list(on_disk(root)) == [1, 7, 8]


def test_names_work_wherever_ids_do(boss: TaskManager) -> None:
    boss.create("flight", name="flight")
    boss.create("hotel", name="hotel", blocked_by=["flight"])
    boss.complete("flight")
    assert boss.get("hotel").unblocked_by == [1]
    with pytest.raises(RefusedError, match="task 1 has the name 'flight' already"):
        boss.create("again", name="flight")
    assert boss.create("again", name="flight", exist_ok=True).id == 1
    with pytest.raises(NotFoundError) as caught:
        boss.complete("train")
    assert caught.value.exit_code == EXIT_NOT_FOUND
    boss.delete(["hotel"])
    assert boss.create("hotel", name="hotel").id == 3


def test_several_tasks_at_once_are_all_done_or_none(boss: TaskManager, root: Path) -> None:
    for _ in range(3):
        boss.create("T")
    before = on_disk(root)
    for act in (lambda: boss.cancel([1, 2, 9]), lambda: boss.release([1]), lambda: boss.delete([1, 9])):
        with pytest.raises(TaskgraphError):
            act()
        assert on_disk(root) == before
    boss.cancel([1, 2])
    assert [d["status"] for d in on_disk(root).values()] == ["cancelled", "cancelled", "pending"]


@pytest.mark.parametrize("form", [list, tuple, iter], ids=["list", "tuple", "iterator"])
def test_several_tasks_may_be_named_in_anything_that_can_be_gone_through(
    boss: TaskManager, root: Path, form: Callable[[list[int]], Iterable[int]]
) -> None:
    for _ in range(2):
        boss.create("T")
    assert len(boss.cancel(form([1, 2]))) == 2
    assert len(boss.reopen(form([1, 2]))[0]) == 2
    assert [d["status"] for d in on_disk(root).values()] == ["pending", "pending"]
    assert boss.delete(form([1, 2]))[0] == [1, 2]


def test_a_description_grows_and_shrinks_by_one_command(boss: TaskManager, root: Path) -> None:
    boss.create("T", labels=["a"], metadata={"keep": 1}, timeout=5)
    boss.update(1, add_notes=["first"], add_labels=["b", "a"], metadata={"k": [1]}, unset=["timeout"], priority=2)
    boss.update(1, add_notes=["second"])
    data = on_disk(root)[1]
    assert (data["notes"], data["labels"], data["metadata"]) == (["first", "second"], ["a", "b"], {"keep": 1, "k": [1]})
    assert "timeout" not in data
    assert data["priority"] == 2


def test_the_author_of_an_event_is_who_acted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKGRAPH_OWNER", "carol")
    TaskManager(root).create("a")
    TaskManager(root, by="dave").create("b")
    events, _ = TaskManager(root).store.history.read()
    assert [e["by"] for e in events] == ["carol", "dave"]


@pytest.mark.parametrize(
    ("status", "then"),
    [("completed", "completed"), ("failed", "failed"), ("skipped", "skipped"), ("cancelled", "cancelled"), ("held", "held"),
     ("in_progress", "in_progress"), ("pending", "pending")],
)  # fmt: skip
def test_a_status_is_reached_by_the_verb_that_leads_there(boss: TaskManager, status: str, then: str) -> None:
    boss.create("T1")
    boss.create("T2", blocked_by=[1])
    assert boss.set_status(1, status)[0].status == then
    task, stale = boss.set_status(1, "pending")
    assert (task.status, stale) == ("pending", [])
    assert boss.get(2).status == "pending"


def test_reopening_says_who_used_the_old_result(boss: TaskManager) -> None:
    boss.create("T1")
    boss.create("T2", blocked_by=[1])
    boss.complete(1)
    boss.complete(2)
    assert boss.set_status(1, "pending")[1] == [2]
    assert boss.get(2).stale


# Claims


def test_a_claim_takes_the_best_that_is_ready_and_says_so_when_there_is_none(boss: TaskManager) -> None:
    boss.create("T1")
    boss.create("T2", blocked_by=[1], priority=9)
    boss.create("T3", priority=5)
    boss.create("T4", command="true")
    boss.create("T5", owner="carol", priority=9)
    assert [boss.claim(None, "bob").id for _ in range(2)] == [3, 1]
    with pytest.raises(NothingToDo):
        boss.claim(None, "bob")
    assert boss.claim(None, "carol").id == 5
    boss.complete(1, Caller("bob", 1))
    assert boss.claim(None, "bob").id == 2


def test_a_claim_is_refused_naming_the_holder_and_needs_a_name(boss: TaskManager) -> None:
    boss.create("T1")
    boss.create("T2", owner="carol")
    boss.claim(1, "bob")
    with pytest.raises(RefusedError, match=r"already claimed by bob \(attempt 1\)"):
        boss.claim(1, "carol")
    with pytest.raises(RefusedError, match="reserved for carol"):
        boss.claim(2, "bob")
    with pytest.raises(UsageError, match="needs an owner"):
        boss.claim(1, "")
    assert boss.claim(2, "bob", force=True).owner == "bob"


def test_a_claim_whose_holder_is_silent_lapses_and_its_late_report_is_refused(boss: TaskManager, root: Path) -> None:
    boss.create("T1", stall_timeout=60)
    boss.create("T2", blocked_by=[1])
    boss.claim(1, "ann")
    beat = Path(layout.run_path(str(root), 1, 1, "beat"))
    attempt = json.loads((root / "task_1.json").read_bytes())
    attempt["attempts"][0]["startedAt"] = "2020-01-01T00:00:00.000Z"
    (root / "task_1.json").write_text(json.dumps(attempt))
    with pytest.raises(RefusedError):
        boss.claim(1, "bob")
    os.utime(beat, (0, 0))
    taken = boss.claim(1, "bob")
    assert (taken.owner, [a.get("outcome") for a in taken.attempts]) == ("bob", ["stalled", None])
    for late in (Caller("ann", 1), Caller("ann"), Caller("", 1)):
        with pytest.raises(RefusedError, match="bob"):
            boss.complete(1, late)
    assert boss.get(2).blocked_by == [1]
    boss.complete(1, Caller("bob", 2))
    assert boss.get(2).blocked_by == []


def test_an_attempt_never_has_the_number_of_a_log_that_is_there(boss: TaskManager, root: Path) -> None:
    boss.create("T1")
    boss.claim(1, "ann")
    boss.release([1], Caller("ann"))
    for n in (1, 2, 3):
        (root / "logs" / f"1.{n}.log").write_text("said")
    data = json.loads((root / "task_1.json").read_bytes())
    del data["attempts"]
    (root / "task_1.json").write_text(json.dumps(data))
    assert boss.claim(1, "ann").attempts[-1]["number"] == 4


def test_a_heartbeat_takes_no_lock_and_is_for_the_holder_of_work_in_progress(boss: TaskManager, root: Path) -> None:
    boss.create("T1")
    with pytest.raises(RefusedError, match="task 1 is pending: nothing to beat for"):
        boss.heartbeat(1, Caller("ann"))
    boss.claim(1, "ann")
    beat = Path(layout.run_path(str(root), 1, 1, "beat"))
    os.utime(beat, (0, 0))
    with boss.store.locked():
        TaskManager(root).heartbeat(1, Caller("ann", 1))
    assert beat.stat().st_mtime > 0
    with pytest.raises(RefusedError, match="no longer current"):
        boss.heartbeat(1, Caller("ann", 2))


# Results that cannot be kept


def test_an_answer_that_json_lacks_is_refused_and_nothing_changes(boss: TaskManager, root: Path) -> None:
    boss.create("T1")
    before = on_disk(root)
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    for bad in (float("nan"), [float("inf")], deep):
        with pytest.raises(StoreError, match="nothing was changed"):
            boss.complete(1, result=bad)
        assert on_disk(root) == before
    assert boss.complete(1, result=[]).result == []
    assert on_disk(root)[1]["result"] == []


# Many processes


WORK = """
import sys
from taskgraph import TaskManager
from taskgraph.core.edit import Edges
who, root, act = int(sys.argv[1]), sys.argv[2], sys.argv[3]
for n in range(int(sys.argv[4])):
    boss = TaskManager(root, by=f"p{who}", durable=False, lock_timeout=60)
    if act == "create":
        print(boss.create(f"{who}.{n}").id)
    elif act == "update":
        boss.update(1 + n % 10, add_notes=[f"{who}.{n}"])
    else:
        boss.claim(None, f"p{who}")
"""


def crowd(root: Path, *acts: str, each: int = 8, times: int = 50) -> list[subprocess.CompletedProcess[str]]:
    """So many processes of each kind at once; all of them end well."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORK, str(who), str(root), act, str(times)], stdout=subprocess.PIPE, text=True
        )
        for act in acts
        for who in range(each)
    ]
    ended = [subprocess.CompletedProcess(p.args, 0, p.communicate(timeout=120)[0]) for p in started]
    assert [p.returncode for p in started] == [0] * len(started)
    return ended


def test_eight_that_create_and_eight_that_update_at_once_lose_nothing(boss: TaskManager, root: Path) -> None:
    for n in range(10):
        boss.create(f"base {n}")
    ended = crowd(root, "create", "update")
    ids = [int(line) for done in ended for line in done.stdout.split()]
    assert sorted(ids) == list(range(11, 411))
    graph = boss.snapshot()
    assert graph.faults == {}
    assert sorted(graph.tasks) == list(range(1, 411))
    assert {t.subject for t in graph.tasks.values() if t.id > 10} == {
        f"{who}.{n}" for who in range(8) for n in range(50)
    }
    notes = [note for i in range(1, 11) for note in graph.tasks[i].notes]
    assert sorted(notes) == sorted(f"{who}.{n}" for who in range(8) for n in range(50))
    events, _ = boss.store.history.read()
    assert [e["id"] for e in events] == list(range(1, 10 + 400 + 400 + 1))
    assert (root / ".highwatermark").read_text() == "410\n"


def test_a_task_is_claimed_once_however_many_reach_for_it(boss: TaskManager, root: Path) -> None:
    for n in range(80):
        boss.create(f"T{n}")
    crowd(root, "claim", each=4, times=20)
    tasks = boss.list()
    assert all(len(t.attempts) == 1 for t in tasks)
    owners = [t.owner for t in tasks]
    assert {name: owners.count(name) for name in set(owners)} == {f"p{n}": 20 for n in range(4)}
