"""Task files on a real disk: read alone, replaced whole, never half-written, whatever happens in between."""

from __future__ import annotations

import codecs
import json
import os
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from taskgraph.core import moves
from taskgraph.core.edit import Edges
from taskgraph.core.graph import Graph
from taskgraph.core.task import new_task
from taskgraph.errors import EXIT_STORE, RefusedError, StoreError
from taskgraph.manager import TaskManager
from taskgraph.store import files, promises
from tests.conftest import SmallDisk, until
from tests.core.build import AT
from tests.store.conftest import KILLED, in_a_child, killed_at_every_moment, opened, read, write


def manager(root: Path, **options: Any) -> TaskManager:
    """The only writer, in a hurry."""
    return TaskManager(root, **{"by": "ann", "durable": False, "lock_timeout": 5.0, **options})


def leftovers(root: Path) -> list[str]:
    """Files that a writer made on the way."""
    return [name for name in os.listdir(root) if name.endswith(".tmp") or name == ".journal"]


# Reading


def test_the_name_of_the_file_is_the_id(root: Path) -> None:
    (root / "task_3.json").write_text('{"id": 7, "subject": "x"}')
    (root / "task_4.json").write_text('{"subject": "y"}')
    graph = opened(root).load()
    assert {i: t.id for i, t in graph.tasks.items()} == {3: 3, 4: 4}
    manager(root).update(3, priority=1)
    assert read(root, 3)["id"] == 3


@pytest.mark.parametrize("meanwhile", ["complete", "create", "delete"])
def test_what_others_change_while_everything_is_read_is_read_again(
    chain: Path, meanwhile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, store = manager(chain), opened(chain)
    acts: dict[str, Callable[[], object]] = {
        "complete": lambda: other.complete(1),
        "create": lambda: other.create("new", blocked_by=[1]),
        "delete": lambda: other.delete([1], force=True),
    }
    read_file = store._read_file

    def late(task_id: int) -> object:
        if task_id == 2 and meanwhile in acts:
            acts.pop(meanwhile)()
        return read_file(task_id)

    monkeypatch.setattr(store, "_read_file", late)
    found = store.load()
    assert {i: task.data for i, task in found.tasks.items()} == {
        i: t.data for i, t in opened(chain).load().tasks.items()
    }


@pytest.mark.parametrize(
    "name", ["task_0.json", "task_01.json", "task_1.json~", "task_x.json", "Task_1.json", "task_-1.json"]
)
def test_other_names_are_no_task_files(root: Path, name: str) -> None:
    (root / name).write_text('{"id": 1}')
    assert opened(root).ids() == []


def test_a_file_that_cannot_be_read_is_named_left_alone_and_stops_nothing_else(root: Path) -> None:
    write(root, 1)
    broken = root / "task_2.json"
    broken.write_text('{\n  "id": 2,\n  "subject": oops\n}')
    write(root, 3, blockedBy=[2])
    boss = manager(root)
    graph = boss.snapshot()
    assert list(graph.tasks) == [1, 3]
    fault = graph.faults[2]
    assert (fault.path, fault.line, fault.exit_code) == (str(broken), 3, EXIT_STORE)
    assert "no valid JSON" in fault.reason
    assert boss.create("new").id == 4
    boss.complete(1)
    boss.reconcile()
    assert broken.read_text() == '{\n  "id": 2,\n  "subject": oops\n}'
    with pytest.raises(RefusedError, match="blocked by 2"):
        boss.complete(3)
    with pytest.raises(StoreError, match="no valid JSON"):
        boss.get(2)


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ('{"id": 2,\n"blockedBy": [3.7]}', "blockedBy: 3.7 is no task id", 2),
        ('{"id": 2,\n\n"status": "done"}', "status: 'done' is no status", 3),
        ('{"id": 2, "maxRetries": true}', "maxRetries: true is no whole number", 1),
        ('{"id": 2, "id": 2}', "the key 'id' is given twice", 1),
    ],
)
def test_a_field_that_is_not_certain_is_named_with_its_line(root: Path, text: str, words: str, line: int) -> None:
    (root / "task_2.json").write_text(text)
    for error in (opened(root).load().faults[2], _fault(root, 2)):
        assert words in error.message
        assert error.line == line


def _fault(root: Path, task_id: int) -> StoreError:
    with pytest.raises(StoreError) as caught:
        opened(root).read(task_id)
    return caught.value


def test_a_folder_a_broken_link_and_a_link_to_itself_are_faults_not_crashes(root: Path) -> None:
    (root / "task_1.json").mkdir()
    (root / "task_2.json").symlink_to("nowhere.json")
    (root / "task_3.json").symlink_to("task_3.json")
    write(root, 4)
    graph = opened(root).load()
    assert sorted(graph.faults) == [1, 2, 3]
    assert list(graph.tasks) == [4]
    assert "a link to a file that is not there" in graph.faults[2].message


# Replacing


def test_a_write_changes_only_files_whose_content_changes(root: Path) -> None:
    for i in (1, 2, 3):
        write(root, i, blockedBy=[i - 1] if i > 1 else [], blocks=[i + 1] if i < 3 else [],
              description="", status="pending", owner="")  # fmt: skip
    before = {i: (root / f"task_{i}.json").stat() for i in (1, 2, 3)}
    boss = manager(root)
    boss.reconcile()
    boss.update(1, owner="")
    after = {i: (root / f"task_{i}.json").stat() for i in (1, 2, 3)}
    assert all(before[i].st_ino == after[i].st_ino for i in (2, 3))
    boss.complete(1)
    assert (root / "task_3.json").stat().st_ino == before[3].st_ino
    assert read(root, 2)["blockedBy"] == []


def test_unknown_fields_order_and_emoji_survive_every_kind_of_change(root: Path) -> None:
    (root / "task_1.json").write_text(
        '{"x-review": {"by": "p1", "n": [1, 2]}, "status": "pending", "subject": "✈️ Flüge", "estimate": 3.50, "id": 1}\n'
    )
    write(root, 2)
    boss = manager(root)
    boss.begin(1)
    boss.update(1, edges=Edges(add_blocks=(2,)))
    boss.update(1, edges=Edges(remove_blocks=(2,)))
    boss.complete(1)
    boss.reopen([1])
    text = (root / "task_1.json").read_text()
    data = json.loads(text)
    assert list(data)[:5] == ["x-review", "status", "subject", "estimate", "id"]
    assert (data["x-review"], data["estimate"]) == ({"by": "p1", "n": [1, 2]}, 3.5)
    assert "✈️ Flüge" in text


def test_foreign_files_in_the_folder_are_left_alone(root: Path) -> None:
    (root / "notes.txt").write_text("mine")
    (root / "task_1.json.bak").write_text("old")
    boss = manager(root)
    boss.create("a")
    boss.delete([1])
    assert (root / "notes.txt").read_text() == "mine"
    assert (root / "task_1.json.bak").read_text() == "old"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_the_mode_of_a_file_is_kept(root: Path, mode: int) -> None:
    path = write(root, 1)
    path.chmod(mode)
    manager(root).update(1, owner="ann")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert read(root, 1)["owner"] == "ann"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_mode_that_the_umask_gives(root: Path, umask: int, mode: int) -> None:
    def create() -> None:
        os.umask(umask)
        manager(root).create("a")

    assert in_a_child(create) == 0
    assert stat.S_IMODE((root / "task_1.json").stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to a group it is not in")
def test_owner_and_group_of_a_file_are_kept(root: Path) -> None:
    path = write(root, 1)
    os.chown(path, 12345, 23456)
    manager(root).update(1, owner="ann")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@pytest.mark.parametrize("absolute", [True, False])
def test_a_symlinked_task_file_is_written_through(root: Path, tmp_path: Path, absolute: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    real = elsewhere / "kept.json"
    real.write_text('{"id": 1, "subject": "x"}')
    link = root / "task_1.json"
    link.symlink_to(real if absolute else "../elsewhere/kept.json")
    manager(root).update(1, owner="ann")
    assert link.is_symlink()
    assert json.loads(real.read_text())["owner"] == "ann"
    assert os.listdir(elsewhere) == ["kept.json"]


def test_a_symlinked_folder_is_a_store(root: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    link = tmp_path / "other" / ".tasks"
    link.symlink_to(root)
    manager(link).create("a")
    assert read(root, 1)["subject"] == "a"
    assert link.is_symlink()


def test_what_a_killed_writer_left_beside_is_garbage_for_the_next(root: Path) -> None:
    write(root, 1)
    (root / ".task_1.json.tmp").write_text("half of")
    manager(root).update(1, owner="ann")
    assert read(root, 1)["owner"] == "ann"
    assert leftovers(root) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_what_somebody_else_left_beside_is_garbage_too(root: Path) -> None:
    """In a store that several people share, a leftover of one must not lock the others out."""
    write(root, 1)
    leftover = root / ".task_1.json.tmp"
    leftover.write_text("half of")
    leftover.chmod(0o600)
    for path in (root, root / "task_1.json", root / ".highwatermark"):
        os.chown(path, 65534, 65534)
    for above in root.parents:
        if above.stat().st_uid == 0 and len(above.parts) > 2:
            above.chmod(0o755)

    def as_somebody() -> None:
        manager(root).list()  # whatever is loaded late, somebody else may not be able to load
        codecs.lookup("ascii")
        os.setgid(65534)
        os.setuid(65534)
        manager(root).update(1, owner="bob")

    assert in_a_child(as_somebody) == 0
    assert read(root, 1)["owner"] == "bob"


def test_a_reader_sees_the_old_version_or_the_new_one_and_never_a_half(root: Path) -> None:
    boss = manager(root)
    boss.create("a", description="x" * 5000)
    done = threading.Event()
    seen: set[int] = set()

    def look() -> None:
        reader = opened(root)
        while not done.is_set():
            task = reader.read(1)
            assert task is not None
            assert task.description == "x" * 5000
            seen.add(task.priority)

    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            look()
        except BaseException as error:
            failed.append(error)

    looker = threading.Thread(target=guarded)
    looker.start()
    for n in range(1, 60):
        boss.update(1, priority=n)
    until(lambda: failed or 59 in seen)
    done.set()
    looker.join()
    assert not failed


# An editor saves a file between our reading and our writing


def saved_in_between(root: Path, edit: Callable[[dict[str, Any]], object], act: Callable[[Graph], object]) -> None:
    """Change task 2 while an editor changes it too."""

    def both(graph: Graph) -> None:
        act(graph)
        data = read(root, 2)
        edit(data)
        write(root, **{"task_id": data.pop("id"), **data})

    manager(root).change(both)


@pytest.fixture
def chain(root: Path) -> Path:
    """1 → 2 → 3, in order."""
    boss = manager(root)
    for i in (1, 2, 3):
        boss.create(f"T{i}", blocked_by=[i - 1] if i > 1 else [])
    return root


@pytest.mark.parametrize(
    ("edit", "kept"),
    [
        (lambda d: d.update(subject="typed"), {"subject": "typed", "owner": "ann"}),
        (lambda d: d.update(x_own={"a": 1}), {"x_own": {"a": 1}, "owner": "ann"}),
        (lambda d: d.update(owner="typed"), {"owner": "ann"}),
        (lambda d: d.pop("description"), {"owner": "ann"}),
    ],
    ids=["another field", "an unknown field", "the same field", "a field taken out"],
)
def test_both_changes_are_kept_and_of_one_field_the_last_wins(chain: Path, edit: Any, kept: dict[str, Any]) -> None:
    def act(graph: Graph) -> None:
        task = graph.get(2)
        assert task is not None
        task.owner = "ann"

    saved_in_between(chain, edit, act)
    assert read(chain, 2).items() >= kept.items()


def test_an_edge_that_an_editor_drew_meanwhile_is_kept_with_ours(chain: Path) -> None:
    boss = manager(chain)
    for _ in range(2):
        boss.create("more")

    def act(graph: Graph) -> None:
        two, four = graph.get(2), graph.get(4)
        assert two is not None
        assert four is not None
        two.blocked_by = [*two.blocked_by, 4]
        four.blocks = [2]

    saved_in_between(chain, lambda d: d["blockedBy"].append(5), act)
    assert sorted(read(chain, 2)["blockedBy"]) == [1, 4, 5]
    boss.reconcile()
    assert (read(chain, 4)["blocks"], read(chain, 5)["blocks"]) == ([2], [2])


def test_a_completion_clears_the_blocker_although_an_editor_saved_the_dependent(chain: Path) -> None:
    def act(graph: Graph) -> None:
        one = graph.get(1)
        assert one is not None
        moves.complete(graph, one, AT)

    saved_in_between(chain, lambda d: d.update(subject="typed"), act)
    found = read(chain, 2)
    assert (found["blockedBy"], found["unblockedBy"], found["subject"]) == ([], [1], "typed")


def test_a_file_that_was_removed_meanwhile_stays_removed(chain: Path) -> None:
    def act(graph: Graph) -> None:
        task = graph.get(3)
        assert task is not None
        task.owner = "ann"
        (chain / "task_3.json").unlink()

    manager(chain).change(act)
    assert not (chain / "task_3.json").exists()
    assert leftovers(chain) == []


def test_a_file_that_was_broken_meanwhile_stops_the_whole_step(chain: Path) -> None:
    def act(graph: Graph) -> None:
        for i in (1, 2, 3):
            task = graph.get(i)
            assert task is not None
            task.owner = "ann"
        (chain / "task_2.json").write_text('{"half')

    with pytest.raises(StoreError, match=r"task_2\.json.*no valid JSON"):
        manager(chain).change(act)
    assert (chain / "task_2.json").read_text() == '{"half'
    assert [read(chain, i)["owner"] for i in (1, 3)] == ["", ""]
    assert leftovers(chain) == []


def test_a_file_made_by_hand_under_a_new_id_is_not_overwritten(root: Path) -> None:
    def act(graph: Graph) -> None:
        graph.add(new_task(1, subject="ours"))
        write(root, 1, subject="theirs")

    with pytest.raises(RefusedError, match="task 1 has a file already"):
        manager(root).change(act)
    assert read(root, 1)["subject"] == "theirs"


# Killed at any moment


def whole(root: Path) -> Graph:
    """The store as the next reader sees it: every file readable."""
    graph = manager(root).snapshot()
    assert graph.faults == {}
    return graph


def test_a_writer_killed_at_any_moment_of_a_change_leaves_whole_files_and_the_next_one_goes_on(
    tmp_path: Path,
) -> None:
    root = tmp_path / ".tasks"

    def prepare() -> None:
        subprocess.run(["rm", "-rf", str(root)], check=True)
        files.make(str(root))
        boss = manager(root)
        for i in (1, 2, 3):
            boss.create(f"T{i}")
        boss.update(3, edges=Edges(add_blocked_by=(1,)))

    def act() -> None:
        manager(root).update(3, edges=Edges(add_blocked_by=(2,), remove_blocked_by=(1,)), description="new")

    for _ in killed_at_every_moment(prepare, act):
        graph = whole(root)
        assert set(graph.tasks[3].blocked_by) in ({1}, {1, 2}, {2})
        for up in graph.tasks[3].blocked_by:
            assert 3 in graph.tasks[up].blocks
        boss = manager(root)
        boss.reconcile()
        assert boss.create("after").id == 4
        assert not (root / ".journal").exists()
    assert read(root, 3)["blockedBy"] == [2]


def test_a_deletion_killed_at_any_moment_is_not_begun_or_is_finished_by_the_next_holder(tmp_path: Path) -> None:
    root = tmp_path / ".tasks"

    def prepare() -> None:
        subprocess.run(["rm", "-rf", str(root)], check=True)
        files.make(str(root))
        boss = manager(root)
        boss.create("T1")
        for i in (2, 3, 4):
            boss.create(f"T{i}", blocked_by=[i - 1])

    for _ in killed_at_every_moment(prepare, lambda: manager(root).delete([2], cascade=True)):
        planned = (root / ".journal").exists()
        manager(root).update(1, owner="next")
        left = whole(root)
        assert sorted(left.tasks) in ([1], [1, 2, 3, 4])
        if planned:
            assert sorted(left.tasks) == [1]
        assert left.tasks[1].blocks == ([] if len(left.tasks) == 1 else [2])
        events = opened(root).history.read()[0]
        assert [e["id"] for e in events] == list(range(1, len(events) + 1))
        deleted = [e["task"] for e in events if e["event"] == "deleted"]
        assert deleted == ([2, 3, 4] if len(left.tasks) == 1 else [])
        assert not (root / ".journal").exists()
        assert manager(root).create("after").id == 5


def test_a_journal_is_finished_before_anything_else_and_only_once(chain: Path) -> None:
    def killed() -> None:
        store = opened(chain)
        store._finish_journal = lambda: (_ for _ in ()).throw(KeyboardInterrupt) if os.path.exists(  # type: ignore[method-assign]
            chain / ".journal") else False  # fmt: skip
        boss = manager(chain)
        boss.store = store
        try:
            boss.delete([3])
        except KeyboardInterrupt:
            os._exit(KILLED)

    assert in_a_child(killed) == KILLED
    assert (chain / "task_3.json").exists()
    for _ in range(2):
        with opened(chain).locked():
            pass
    assert not (chain / "task_3.json").exists()
    assert read(chain, 2)["blocks"] == []
    events = opened(chain).history.read()[0]
    assert [e["event"] for e in events].count("deleted") == 1


def promised(root: Path, task_id: int) -> None:
    """Start a task like a runner that is killed before the start is in its file."""

    def start() -> None:
        store = opened(root)
        with store.locked():
            graph = store.load()
            moves.start(graph, graph.tasks[task_id], AT, process="r.1", force=True)
            store.promise(promises.line(graph.tasks[task_id]))
            os._exit(KILLED)

    assert in_a_child(start) == KILLED


def test_a_start_promised_by_a_killed_runner_is_shown_by_readers_and_carried_out_by_the_next_holder(
    chain: Path,
) -> None:
    promised(chain, 1)
    assert read(chain, 1)["status"] == "pending"
    for found in (manager(chain).get(1), manager(chain).snapshot().tasks[1]):
        assert (found.status, found.attempts[-1]["process"]) == ("in_progress", "r.1")
    with pytest.raises(RefusedError, match="already claimed by a run"):
        manager(chain).claim(1, "bob")
    found_now = read(chain, 1)
    assert (found_now["status"], [a["number"] for a in found_now["attempts"]]) == ("in_progress", [1])
    manager(chain).update(2, owner="x")
    assert len(read(chain, 1)["attempts"]) == 1


def test_a_promise_keeps_what_an_editor_saved_meanwhile(chain: Path) -> None:
    promised(chain, 1)
    data = read(chain, 1)
    write(chain, 1, **{**{k: v for k, v in data.items() if k != "id"}, "subject": "typed"})
    with opened(chain).locked():
        pass
    found = read(chain, 1)
    assert (found["subject"], found["status"], len(found["attempts"])) == ("typed", "in_progress", 1)


def test_a_promise_takes_back_no_decision_of_a_person(chain: Path) -> None:
    promised(chain, 1)
    write(chain, 1, status="cancelled")
    for _ in range(2):
        assert manager(chain).get(1).status == manager(chain).snapshot().tasks[1].status == "cancelled"
        manager(chain).update(2, owner="x")
    assert [a["number"] for a in read(chain, 1)["attempts"]] == [1]


@pytest.mark.parametrize("broken", ["", "{", '{"id": 1, "sub'])
def test_a_promise_holds_until_its_file_can_be_read_again(chain: Path, broken: str) -> None:
    promised(chain, 1)
    path = chain / "task_1.json"
    whole = path.read_text()
    path.write_text(broken)
    same = manager(chain)
    for boss in (manager(chain), same, same, manager(chain)):
        boss.update(2, owner=f"{time.time()}")
        with boss.store.locked():
            # What a run promises itself stands beside it.
            boss.store.promise(b"[]\n")
            boss.store.promise(b"", now=False)
    path.write_text(whole)
    assert manager(chain).get(1).status == "in_progress"
    manager(chain).update(2, owner="y")
    assert (read(chain, 1)["status"], len(read(chain, 1)["attempts"])) == ("in_progress", 1)


def test_a_promise_for_a_task_that_was_removed_or_broken_stops_nobody(chain: Path) -> None:
    promised(chain, 1)
    (chain / "task_1.json").unlink()
    with opened(chain).locked():
        pass
    assert not (chain / "task_1.json").exists()
    promised(chain, 3)
    (chain / "task_3.json").write_text("{")
    manager(chain).update(2, owner="x")
    assert (chain / "task_3.json").read_text() == "{"


# Ids


def test_ids_are_never_reused_even_after_everything_was_deleted(root: Path) -> None:
    boss = manager(root)
    assert [boss.create("a").id for _ in range(3)] == [1, 2, 3]
    boss.delete([3])
    assert boss.create("b").id == 4
    boss.delete([1, 2, 4])
    assert manager(root).create("c").id == 5


def test_an_id_that_a_person_gave_is_given_out(root: Path) -> None:
    boss = manager(root)
    boss.create("a")
    write(root, 40)
    assert boss.create("b").id == 41
    boss.delete([40])
    (root / "task_41.json").unlink()
    assert boss.create("c").id == 42


@pytest.mark.parametrize("mark", [None, "", "garbage", "1.5", "-5", "0", "12 monkeys", "\0\0\0\0"])
def test_a_mark_that_is_lost_is_made_up_from_what_is_there(root: Path, mark: str | None) -> None:
    boss = manager(root)
    for _ in range(3):
        boss.create("a")
    if mark is None:
        (root / ".highwatermark").unlink()
    else:
        (root / ".highwatermark").write_text(mark)
    assert manager(root).create("b").id == 4
    assert (root / ".highwatermark").read_text() == "4\n"


def test_a_lost_mark_is_made_up_from_logs_of_tasks_that_are_gone(root: Path) -> None:
    manager(root).create("a")
    (root / "logs" / "7.1.log").write_text("what task 7 said")
    (root / ".highwatermark").unlink()
    assert manager(root).create("b").id == 8


def test_a_lost_mark_is_made_up_from_the_history_of_tasks_that_are_gone(root: Path) -> None:
    boss = manager(root)
    for _ in range(3):
        boss.create("a")
    boss.delete([3, 2])
    (root / ".highwatermark").unlink()
    assert manager(root).create("b").id == 4


def test_the_id_of_a_file_that_cannot_be_read_stays_taken(root: Path) -> None:
    (root / "task_1.json").write_text("{")
    assert manager(root).create("a").id == 2


def test_an_id_is_noted_before_it_is_used(root: Path) -> None:
    """A process killed between the two leaves a gap, never a double."""

    def killed() -> None:
        store = opened(root)
        with store.locked():
            store.allocate()
            os._exit(KILLED)

    assert in_a_child(killed) == KILLED
    assert manager(root).create("a").id == 2


# Disks that refuse


@pytest.mark.parametrize("verb", ["create", "update", "delete"])
def test_on_a_full_disk_one_sentence_is_said_and_nothing_is_lost(small_disk: SmallDisk, verb: str) -> None:
    root = small_disk.path / ".tasks"
    files.make(str(root))
    boss = manager(root, durable=True)
    for i in (1, 2):
        boss.create(f"T{i}", description="x" * 3000, blocked_by=[1] if i == 2 else [])
    before = {path.name: path.read_bytes() for path in root.glob("task_*.json")}
    small_disk.fill(root / "events.jsonl")
    act: dict[str, Callable[[], object]] = {
        "create": lambda: boss.create("T3", blocks=[1]),
        "update": lambda: boss.update(1, description="y" * 9000),
        "delete": lambda: boss.delete([1], force=True),
    }
    with pytest.raises(StoreError) as caught:
        act[verb]()
    assert caught.value.exit_code == EXIT_STORE
    assert "No space left on device; nothing was changed" in caught.value.message
    assert "\n" not in caught.value.message
    assert {path.name: path.read_bytes() for path in root.glob("task_*.json")} == before
    small_disk.make_room()
    next_one = manager(root, durable=True)
    next_one.update(1, description="z")
    assert next_one.create("T3").id in (3, 4)
    assert leftovers(root) == []
    assert whole(root).tasks[2].blocked_by == [1]


@pytest.fixture
def read_only(small_disk: SmallDisk) -> Iterator[Path]:
    """A store on a disk that is mounted read-only."""
    root = small_disk.path / ".tasks"
    files.make(str(root))

    def prepare() -> None:
        boss = manager(root)
        boss.create("a")
        boss.create("b", blocked_by=[1])

    assert in_a_child(prepare) == 0  # whoever still had a file open would keep the disk writable
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk.path)], check=True)
    yield root
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk.path)], check=True)


def test_a_read_only_store_is_read_like_any_other(read_only: Path) -> None:
    boss = manager(read_only)
    assert [t.id for t in boss.list()] == [1, 2]
    assert boss.get(2).blocked_by == [1]


@pytest.mark.parametrize("verb", ["create", "complete", "delete", "claim", "reconcile"])
def test_a_change_to_a_read_only_store_is_refused_in_one_sentence(read_only: Path, verb: str) -> None:
    boss = manager(read_only)
    act: dict[str, Callable[[], object]] = {
        "create": lambda: boss.create("x"),
        "complete": lambda: boss.complete(1),
        "delete": lambda: boss.delete([1]),
        "claim": lambda: boss.claim(1, "ann"),
        "reconcile": boss.reconcile,
    }
    with pytest.raises(StoreError, match="Read-only file system") as caught:
        act[verb]()
    assert caught.value.exit_code == EXIT_STORE
    assert str(read_only) in caught.value.message


def test_a_store_can_be_made_again_and_anywhere_but_on_a_file(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "er" / ".tasks"
    assert files.make(str(root))
    assert not files.make(str(root))
    assert sorted(os.listdir(root)) == [".gitignore", ".highwatermark", "logs", "run"]
    assert (root / ".gitignore").read_text().split() == ["run/", "logs/", ".lock", "events.jsonl"]
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"no store can be made there|Not a directory"):
        files.make(str(tmp_path / "file"))
    with pytest.raises(StoreError, match="cannot be made"):
        files.make(str(tmp_path / "file" / ".tasks"))


def test_making_a_store_where_files_are_already_gives_out_no_id_twice(tmp_path: Path) -> None:
    root = tmp_path / ".tasks"
    root.mkdir()
    write(root, 12)
    files.make(str(root))
    assert manager(root).create("a").id == 13
