"""What people and editors do to task files and to the history under a run: nothing of the run's or of theirs is lost."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from taskgraph.core import moves
from taskgraph.core.graph import Graph
from taskgraph.core.limits import PLAIN, resolve
from taskgraph.manager import TaskManager
from taskgraph.runner.others import Others
from taskgraph.runner.writer import Writer
from taskgraph.store import files
from tests.conftest import until

AT = "2026-05-01T08:00:00.000Z"
FILE = ".tasks/task_1.json"
UP = f'until grep -q \'^  "status": "in_progress\' {FILE}; do sleep 0.02; done; '
CANCEL = 'sed \'s/^  "status": "in_progress/  "status": "cancelled/\''


# While real work runs


@pytest.mark.parametrize(
    ("away", "back"),
    [
        (f"cp {FILE} kept; : > {FILE}", f"cat kept > {FILE}"),
        (f"cp {FILE} kept; printf '%s' '{{\"id\": 1, \"sub' > {FILE}", f"cat kept > {FILE}"),
        (f"mv {FILE} kept", f"mv kept {FILE}"),
        (f"mv {FILE} kept", f"cat kept > {FILE}"),
    ],
    ids=["cut to nothing", "half written", "moved away and back", "moved away and made anew"],
)
@pytest.mark.parametrize("more", ["", "sleep 0.05; "], ids=["as it ends", "before it ends"])
def test_a_file_that_is_being_saved_as_its_work_ends_costs_nothing(store, away, back, more):
    saves = f"{away}; (sleep 0.3; {back}) > /dev/null 2>&1 & {more}echo 1 >> order"
    store.write(1, UP + saves)
    store.write(2, "echo 2 >> order", blockedBy=[1])
    store.write(3, "echo 3 >> others")
    store.run("-j", "2")
    assert store.lines("order") == ["1", "2"]
    assert store.outcomes(1) == ["completed"]
    assert set(store.statuses().values()) == {"completed"}


@pytest.mark.parametrize(
    "saved",
    [f"{CANCEL} -i {FILE}", f"{CANCEL} {FILE} > kept; cat kept > {FILE}"],
    ids=["replaced", "in place"],
)
def test_a_status_that_was_edited_just_before_the_work_ended_holds(store, saved):
    store.write(1, f"{UP}{saved}")
    store.write(2, "true", blockedBy=[1])
    store.run()
    assert store.status(1) == "cancelled"
    assert store.status(2) == "cancelled"


def test_a_file_that_is_removed_for_good_takes_its_task_along(store, gate):
    store.write(1, f"{UP}rm {FILE}; sleep 60")
    store.write(2, "echo 2 >> order")
    store.run("-j", "2")
    assert store.statuses() == {2: "completed"}


@pytest.mark.parametrize(
    ("away", "back", "order"),
    [
        ("mv F kept", "mv kept F", ["1", "3", "2"]),
        ("cp F kept; : > F", "cat kept > F", ["1", "3", "2"]),
        ("rm F", "", ["1", "3"]),
        ("rm F; mkfifo F", "rm F", ["1", "3"]),
    ],
    ids=["moved away", "cut to nothing", "removed", "a pipe"],
)
def test_a_task_whose_file_is_away_at_its_turn_holds_nobody_up(store, away, back, order):
    name = ".tasks/task_2.json"
    store.write(1, f"echo 1 >> order; {away.replace('F', name)}")
    store.write(2, "echo 2 >> order", priority=1, blockedBy=[1])
    store.write(3, f"echo 3 >> order; sleep 0.4; {back.replace('F', name)}", blockedBy=[1])
    store.run("-j", "1")
    assert store.lines("order") == order
    assert set(store.statuses().values()) == {"completed"}


@pytest.mark.parametrize("made", ["mkdir F", "mkfifo F", "ln -s task_2.json F", "ln -s /nowhere/at/all F"])
@pytest.mark.parametrize("when", ["waiting", "ready"])
def test_what_is_put_in_the_place_of_a_file_stops_only_what_depends_on_it(store, made, when):
    name = ".tasks/task_2.json"
    store.write(1, f"rm {name}; {made.replace('F', name)}; echo 1 >> order")
    store.write(2, "echo 2 >> order", blockedBy=[1] if when == "waiting" else [])
    store.write(3, "echo 3 >> order", blockedBy=[2])
    store.write(4, "sleep 0.5; echo 4 >> order", blockedBy=[1])
    store.run("-j", "1", expect=5)
    assert store.lines("order") == ["1", "4"]
    assert (store.status(1), store.status(4)) == ("completed", "completed")


@pytest.mark.parametrize("place", ["run/x.lock", "run/x.jsonl", "run/x.spare", "run/1.1.beat"])
def test_a_pipe_among_what_others_left_holds_no_run_up(store, place):
    store.write(1, "true")
    os.mkfifo(store.tasks / place)
    store.run(timeout=20)
    assert store.outcomes(1) == ["completed"]


def test_a_pipe_in_the_place_of_a_log_fails_the_attempt(store):
    store.write(1, "true")
    os.mkfifo(store.tasks / "logs" / "1.1.log")
    done = store.cli("run", timeout=20)
    assert done.returncode in (0, 1)
    assert store.status(1) in ("completed", "failed")


def test_an_end_whose_file_is_away_for_longer_is_known_when_it_is_back(store):
    store.write(1, f"{UP}mv {FILE} kept; echo 1 >> order")
    store.write(2, "sleep 2.5")
    store.run("-j", "2")
    os.rename(store.folder / "kept", store.path(1))
    store.run()
    assert store.lines("order") == ["1"]
    assert store.outcomes(1) == ["completed"]


def test_no_second_copy_starts_while_the_first_is_being_ended(store):
    loud = "trap '' TERM; exec > /dev/null 2>&1; for i in $(seq 100); do echo 1 >> order; sleep 0.05; done"
    store.write(1, f"[ -s order ] && {{ echo 2 >> order; exit; }}; ({loud}) & wait")
    before = store.path(1).read_text()
    (store.folder / "old").write_text(before)
    # An editor that was opened before the start saves what it knows.
    store.write(2, f"{UP}until [ -s order ]; do sleep 0.02; done; cat old > {FILE}")
    assert store.go(grace=0.7).exit_code == 0
    assert store.lines("order") == ["1"] * (len(store.lines("order")) - 1) + ["2"]
    assert 5 < len(store.lines("order")) < 60


@pytest.mark.parametrize("verbs", [("hold", "release"), ("cancel", "reopen"), ("skip", "reopen")])
def test_what_is_put_aside_and_taken_up_again_runs_once_at_a_time(store, verbs):
    loud = "trap '' TERM; exec > /dev/null 2>&1; for i in $(seq 20); do echo 1 >> order; sleep 0.05; done"
    store.write(1, f"[ -s order ] && {{ echo 2 >> order; exit; }}; ({loud}) & wait")
    store.write(9)
    run = store.start("--wait", "-j", "2")
    store.wait_for("order")
    for verb in verbs:
        assert store.cli(verb, "1").returncode == 0
    store.wait_for_status(1, "completed")
    assert store.cli("complete", "9").returncode == 0
    assert store.ends(run) == 0
    assert store.lines("order") == ["1"] * (len(store.lines("order")) - 1) + ["2"]


@pytest.mark.parametrize("line", ['"task":"1"', '"task":{"a":1}', '"task":null', '"task":1.5', '"task":[1]'])
def test_an_odd_line_in_the_history_stops_no_run(store, line):
    odd = f'{{"id":7,{line},"event":"deleted"}}'
    store.write(1, f"echo '{odd}' >> .tasks/events.jsonl; sleep 0.3")
    store.run()
    assert store.status(1) == "completed"


HISTORY = ".tasks/events.jsonl"


@pytest.mark.parametrize(
    "gone", [f"mv {HISTORY} old", f"rm {HISTORY}", f": > {HISTORY}"], ids=["moved", "removed", "emptied"]
)
def test_two_runs_lose_no_end_when_the_history_goes(store, gate, gone):
    for n in (1, 2):
        store.write(n, f"{gate.wait}; echo {n} >> order; [ {n} = 2 ] || {{ {gone}; }}")
    runs = [store.start("-q", "-j", "1") for _ in range(2)]
    until(lambda: list(store.statuses().values()) == ["in_progress"] * 2, "both to run")
    until(lambda: len(store.keepers()) == 2, "both keepers")
    gate.open()
    assert [store.ends(run) for run in runs] == [0, 0]
    assert (store.outcomes(1), store.outcomes(2)) == (["completed"], ["completed"])
    assert sorted(store.lines("order")) == ["1", "2"]


@pytest.mark.parametrize(
    "gone", [f"mv {HISTORY} old", f"rm {HISTORY}", f": > {HISTORY}"], ids=["moved", "removed", "emptied"]
)
def test_what_another_run_completed_is_not_judged_from_an_old_picture(store, gate, gone):
    store.write(1, f"{gate.wait}; echo ran >> order; {gone}")
    first = store.start("-q")
    store.wait_for_status(1, "in_progress")
    second = store.start("-q")
    until(lambda: len(store.keepers()) == 2, "the second run")
    gate.open()
    assert (store.ends(first), store.ends(second)) == (0, 0)
    assert store.outcomes(1) == ["completed"]


# The same, step by step


class Desk:
    """A run's picture of a store with one task of which an attempt runs, and its hands."""

    def __init__(self, folder: Path) -> None:
        files.make(str(folder / ".tasks"))
        self.boss = TaskManager(folder, by="test")
        self.boss.create("a", command="true")
        self.path = Path(self.boss.root, "task_1.json")
        self.graph: Graph = self.boss.reconcile()
        self.writer = Writer(self.boss.store, self.graph, "run")
        self.others = Others(self.boss.store, self.graph, self.writer, self.boss.store.history.mark())
        self.now = time.monotonic()

    def begin(self, *, busy: bool) -> None:
        """Start the task; with ``busy`` the start stays a promise."""
        with self.boss.store.locked():
            moves.start(self.graph, self.graph.tasks[1], AT, process="r.1")
            self.commit([], [1], busy=busy)
            if not busy:
                self.writer.flush()

    def end(self) -> None:
        """Record its success."""
        task = self.graph.tasks[1]
        moves.conclude(self.graph, task, AT, resolve(task, PLAIN), {"outcome": "completed", "exitCode": 0})
        self.commit([1], [], busy=False)

    def commit(self, ended: list[int], started: list[int], *, busy: bool) -> None:
        """Write a step."""
        self.writer.commit(self.now, ended, started, lambda: None, lambda: busy)
        self.others.wrote()

    def look(self, later: float = 0.0) -> None:
        """Look at all files."""
        self.now += later
        with self.boss.store.locked():
            self.others.take_in(AT, self.now, scan=True)
            self.commit([], [], busy=False)

    def stored(self) -> str:
        """The status in the file."""
        return str(json.loads(self.path.read_text()).get("status", "pending"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_file_broken_between_the_look_and_the_write_is_written_when_it_is_whole(desk: Desk) -> None:
    desk.begin(busy=False)
    whole = desk.path.read_text()
    desk.path.write_text("{")
    with desk.boss.store.locked():
        desk.end()
    assert list(desk.graph.faults) == [1]
    assert desk.path.read_text() == "{"
    assert desk.others.may_be_back(desk.now)
    desk.look(0.2)
    assert list(desk.graph.faults) == [1]
    desk.path.write_text(whole.replace('"a"', '"edited"'))
    desk.look(0.2)
    desk.look(1.0)
    assert not desk.graph.faults
    assert desk.stored() == "completed"
    assert '"edited"' in desk.path.read_text()
    assert desk.graph.dirty == set()


def test_a_file_gone_between_the_look_and_the_write_is_let_go_after_a_while(desk: Desk) -> None:
    desk.begin(busy=False)
    desk.path.unlink()
    with desk.boss.store.locked():
        desk.end()
    desk.look(0.2)
    assert list(desk.graph.tasks) == list(desk.graph.faults) == [1]
    desk.look(2.0)
    assert not desk.graph.tasks
    assert not desk.graph.faults
    assert not desk.path.exists()


def test_a_file_that_stays_broken_is_not_waited_for_any_longer(desk: Desk) -> None:
    desk.path.write_text("{")
    desk.look()
    assert desk.others.may_be_back(desk.now)
    assert not desk.others.may_be_back(desk.now + 2)
    desk.look(2.0)
    assert list(desk.graph.faults) == [1]


def test_a_file_that_could_not_be_read_is_read_again_though_it_did_not_change(desk: Desk) -> None:
    st = desk.path.stat()
    whole = desk.path.read_bytes()
    desk.path.write_bytes(b"\xff" * len(whole))
    desk.look()
    assert list(desk.graph.faults) == [1]
    desk.path.write_bytes(whole)
    os.utime(desk.path, ns=(st.st_atime_ns, st.st_mtime_ns))
    desk.look(0.2)
    assert not desk.graph.faults


def test_a_task_deleted_by_a_command_is_gone_at_once(desk: Desk) -> None:
    TaskManager(desk.boss.root).delete([1])
    with desk.boss.store.locked():
        desk.others.take_in(AT, desk.now, scan=False)
    assert not desk.graph.tasks
    assert not desk.graph.faults


def test_a_promised_start_that_somebody_cancelled_stays_cancelled(desk: Desk) -> None:
    desk.begin(busy=True)
    assert desk.stored() == "pending"
    TaskManager(desk.boss.root).cancel([1])
    assert desk.stored() == "cancelled"
    desk.look()
    assert desk.graph.tasks[1].status == "cancelled"
    desk.look(1.0)
    assert desk.stored() == "cancelled"


def test_a_promised_start_goes_over_what_an_editor_saved(desk: Desk) -> None:
    desk.begin(busy=True)
    desk.path.write_text(desk.path.read_text().replace('"a"', '"edited"'))
    desk.look()
    desk.look(1.0)
    assert desk.stored() == "in_progress"
    assert '"edited"' in desk.path.read_text()


def test_a_promise_holds_while_its_file_is_away(desk: Desk) -> None:
    desk.begin(busy=True)
    away = desk.path.rename(desk.path.with_name("away"))
    desk.now += 1
    with desk.boss.store.locked():
        desk.commit([], [], busy=False)
    assert desk.writer.next_due() > desk.now
    away.rename(desk.path)
    assert desk.stored() == "pending"
    assert TaskManager(desk.boss.root).get(1).status == "in_progress"
    desk.look(0.2)
    desk.look(1.0)
    assert desk.stored() == "in_progress"


def test_what_somebody_decides_over_a_promise_whose_file_was_away_holds(desk: Desk) -> None:
    desk.begin(busy=True)
    whole = desk.path.read_text()
    desk.path.write_text("{")
    desk.now += 1
    with desk.boss.store.locked():
        desk.commit([], [], busy=False)
    desk.path.write_text(whole)
    TaskManager(desk.boss.root).cancel([1])
    desk.look(0.2)
    assert desk.graph.tasks[1].status == "cancelled"
    desk.look(1.0)
    assert (desk.stored(), len(json.loads(desk.path.read_text())["attempts"])) == ("cancelled", 1)


@pytest.mark.parametrize("status", ["cancelled", "skipped", "held", "completed"])
def test_a_status_saved_over_a_promised_start_holds(desk: Desk, status: str) -> None:
    desk.begin(busy=True)
    desk.path.write_text(desk.path.read_text().replace('"pending"', f'"{status}"'))
    desk.look()
    assert desk.graph.tasks[1].status == status
    desk.look(1.0)
    assert (desk.stored(), len(json.loads(desk.path.read_text())["attempts"])) == (status, 1)


def test_a_file_saved_between_the_look_and_the_write_is_read_first(desk: Desk) -> None:
    desk.begin(busy=False)
    desk.path.write_text(desk.path.read_text().replace('"in_progress"', '"cancelled"'))
    with desk.boss.store.locked():
        desk.end()
    assert desk.stored() == "cancelled"
    desk.look(0.2)
    desk.look(1.0)
    assert desk.stored() == "cancelled"
    assert json.loads(desk.path.read_text())["attempts"][0]["outcome"] == "completed"
    assert not desk.graph.faults
