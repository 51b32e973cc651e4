"""Faults that struck comparable tools and were reported in public: files, ids, locks, and many writers at once."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.driver import Keyboard
from tests.conftest import StoreBox, clean_environment

_HAND = """
import io, json, sys
from taskgraph.cli.main import run
answer = sys.stdout
for line in sys.stdin:
    sys.stdout = io.StringIO()
    print(run(json.loads(line)), file=answer, flush=True)
"""


class Hands:
    """Processes that carry out commands side by side; each is started once, since storms would else mostly start Pythons.

    Args:
        store: where they work.
        count: how many.
    """

    def __init__(self, store: StoreBox, count: int) -> None:
        self._free: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        self._all = [
            subprocess.Popen([sys.executable, "-c", _HAND], cwd=store.folder, env=clean_environment(), text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            for _ in range(count)
        ]  # fmt: skip

    def __enter__(self) -> Hands:
        for hand in self._all:
            self._free.put(hand)
        return self

    def __exit__(self, *_: object) -> None:
        for hand in self._all:
            hand.kill()
            hand.communicate()

    def at_once(self, commands: list[list[str]]) -> list[int]:
        """Carry out commands, as many at a time as there are hands; their exit codes."""
        with ThreadPoolExecutor(len(self._all)) as pool:
            return list(pool.map(self._carry_out, commands))

    def _carry_out(self, words: list[str]) -> int:
        hand = self._free.get()
        assert hand.stdin is not None
        assert hand.stdout is not None
        try:
            hand.stdin.write(json.dumps(words) + "\n")
            hand.stdin.flush()
            return int(hand.stdout.readline())
        finally:
            self._free.put(hand)


def test_a_rewrite_keeps_what_the_tool_does_not_know(tg: Keyboard) -> None:
    box = tg.store
    typed = '{"x-review": {"by": "p1", "n": [1, 2]}, "id": 1, "estimate": 3.50, "subject": "emoji 🚀 é", "status": "pending"}'
    box.path(1).write_text(typed)
    box.write(2)
    (box.tasks / "notes.txt").write_text("foreign")
    tg.ok("update", "1", "--status", "in_progress")
    box.path(9).write_text('{"id":9,"subject":"written meanwhile"}')
    tg.ok("update", "1", "--add-blocked-by", "2")
    tg.ok("update", "1", "--remove-blocked-by", "2")
    tg.ok("update", "1", "--status", "completed")
    data = box.read(1)
    assert list(data)[:5] == ["x-review", "id", "estimate", "subject", "status"]
    assert (data["x-review"], data["estimate"]) == ({"by": "p1", "n": [1, 2]}, 3.5)
    assert "emoji 🚀 é" in box.path(1).read_text()
    assert (box.tasks / "notes.txt").read_text() == "foreign"
    assert box.read(9)["subject"] == "written meanwhile"
    untouched = box.path(2).read_bytes()
    tg.ok("update", "1", "--note", "n")
    assert box.path(2).read_bytes() == untouched


def test_the_number_of_a_deleted_task_is_not_given_out_again(tg: Keyboard) -> None:
    box = tg.store
    for subject in "abc":
        tg.ok("create", subject)
    tg.ok("update", "2", "--add-blocked-by", "3")
    tg.ok("delete", "3", "--force")
    assert tg.json("create", "d")["id"] == 4
    assert box.read(2)["blockedBy"] == []
    tg.ok("delete", "1", "2", "4")
    assert tg.json("list") == []
    assert tg.json("create", "e")["id"] == 5
    (box.tasks / ".highwatermark").unlink()
    box.path(5).unlink()
    (box.tasks / "logs" / "7.1.log").write_text("of a task that is gone")
    assert tg.json("create", "f")["id"] == 8


def test_ids_stay_unique_when_creators_are_killed(store: StoreBox) -> None:
    for _ in range(5):
        process = subprocess.Popen(store.command("create", "x"), cwd=store.folder, env=clean_environment(),
                                   stdout=subprocess.DEVNULL)  # fmt: skip
        process.kill()
        process.wait()
    taken = [int(store.cli("create", "-q", "y").stdout) for _ in range(2)]
    assert len(set(taken)) == 2
    assert store.cli("check").returncode == 0


def add_notes(store: StoreBox, hands: int, each: int) -> None:
    """Append notes to one task from many processes, and see that each is there."""
    store.write(1)
    store.cli("update", "1", "--note", "first")
    lock = (store.tasks / ".lock").stat().st_ino
    notes = [f"n{number}" for number in range(hands * each)]
    with Hands(store, hands) as workers:
        codes = workers.at_once([["update", "1", "--note", note] for note in notes])
    assert set(codes) == {0}
    assert sorted(store.read(1)["notes"]) == sorted(["first", *notes])
    assert (store.tasks / ".lock").stat().st_ino == lock
    (store.tasks / ".lock").unlink()
    assert store.cli("update", "1", "--note", "after").returncode == 0


def test_many_writers_of_one_task_lose_nothing(store: StoreBox) -> None:
    add_notes(store, 4, 5)


@pytest.mark.slow
def test_twelve_writers_of_one_task_lose_nothing_in_2400_updates(store: StoreBox) -> None:
    add_notes(store, 12, 200)


def change_different_fields(store: StoreBox, rounds: int) -> None:
    """Change different fields of one task at the same moment, while an editor saves it."""
    for number in range(1, rounds + 2):
        store.write(number, status="completed" if number > 1 else "pending")
    with Hands(store, 4) as workers:
        for number in range(1, rounds + 1):
            change_in_one_round(store, workers, number)


def change_in_one_round(store: StoreBox, workers: Hands, number: int) -> None:
    """One round of it."""
    store.write(1, status="pending")
    commands = [["update", "1", "--set", f"k1={number}"], ["update", "1", "--set", f"k2={number}"],
                ["update", "1", "--add-blocked-by", str(number + 1)],
                ["update", "1", "--status", "in_progress"]]  # fmt: skip
    assert workers.at_once(commands) == [0, 0, 0, 0]
    data = store.read(1)
    assert (data["metadata"], data["status"]) == ({"k1": number, "k2": number}, "in_progress")
    assert number + 1 in data["unblockedBy"]


def test_changes_of_different_fields_at_once_are_all_kept(store: StoreBox) -> None:
    change_different_fields(store, 2)


@pytest.mark.slow
def test_changes_of_different_fields_at_once_are_all_kept_in_50_rounds(store: StoreBox) -> None:
    change_different_fields(store, 50)


def test_what_an_editor_saves_in_between_is_kept(tg: Keyboard) -> None:
    from taskgraph.manager import TaskManager

    tg.ok("create", "a")

    def act(graph: object) -> None:
        task = graph.get(1)  # type: ignore[attr-defined]
        tg.store.write(1, subject="saved by an editor", extra="kept")
        task.put("notes", ["n"])

    TaskManager(tg.store.tasks).change(act)
    data = tg.store.read(1)
    assert (data["subject"], data["extra"], data["notes"]) == ("saved by an editor", "kept", ["n"])


@pytest.mark.parametrize("note", ["", "999999999\n", "{own} 2020-01-01T00:00:00Z\n", "junk"])
def test_a_lock_file_that_outlived_its_holder_holds_nobody_up(tg: Keyboard, note: str) -> None:
    (tg.store.tasks / ".lock").write_text(note.replace("{own}", str(os.getpid())))
    began = time.monotonic()
    tg.ok("create", "a")
    assert time.monotonic() - began < 8


def kill_writers(store: StoreBox, times: int) -> None:
    """Kill writers at any moment; the next one finds no obstacle and no broken file."""
    store.write(1)
    for number in range(times):
        process = subprocess.Popen(store.command("update", "1", "--note", f"n{number}"), cwd=store.folder,
                                   env=clean_environment(), stdout=subprocess.DEVNULL)  # fmt: skip
        time.sleep(0.08 + 0.0007 * number)  # somewhere within the life of the process
        process.kill()
        process.wait()
    began = time.monotonic()
    assert store.cli("create", "after").returncode == 0
    assert time.monotonic() - began < 8
    assert store.cli("list").returncode == 0
    assert list(store.tasks.glob("*.tmp")) == []


def test_killed_writers_leave_no_lock_and_no_broken_file(store: StoreBox) -> None:
    kill_writers(store, 8)


@pytest.mark.slow
def test_a_hundred_killed_writers_leave_no_lock_and_no_broken_file(store: StoreBox) -> None:
    kill_writers(store, 100)


_HOLD = """
import sys, time
from taskgraph import TaskManager
with TaskManager(sys.argv[1]).store.locked():
    print(flush=True)
    time.sleep(99)
"""


@pytest.mark.slow
def test_behind_a_frozen_holder_readers_go_on_and_writers_give_up_in_time(store: StoreBox) -> None:
    store.write(1)
    with subprocess.Popen([sys.executable, "-c", _HOLD, str(store.tasks)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        try:
            for verb in (["list"], ["get", "1"], ["status"], ["explain", "1"], ["events"]):
                assert store.cli(*verb).returncode == 0
            began = time.monotonic()
            told = store.cli("update", "1", "--note", "n")
            assert 5 < time.monotonic() - began <= 30
            assert told.returncode == 7
            assert str(holder.pid) in told.stderr
        finally:
            holder.kill()
    assert store.cli("update", "1", "--note", "n").returncode == 0


def test_ids_and_lists_of_the_wrong_json_type(tg: Keyboard) -> None:
    box = tg.store
    box.write(1)
    box.write(2)
    box.path(3).write_text(
        '{"id": "3", "subject": "c", "blockedBy": ["1", 2, "#2", 2.0], "timeout": "30", "maxRetries": 2.0}'
    )
    box.write(4, blockedBy="1")
    box.write(5, blockedBy="[1,2]", status="Pending")
    assert [tg.json("get", str(i))["blockedBy"] for i in (3, 4, 5)] == [[1, 2], [1], [1, 2]]
    assert (tg.json("get", "3")["timeout"], tg.json("get", "3")["maxRetries"]) == (30, 2)
    assert "3 → 3" in tg.refused(2, "update", "3", "--add-blocked-by", "#3")
    tg.ok("complete", "1")
    tg.ok("complete", "2")
    assert [tg.json("get", str(i))["state"] for i in (3, 4, 5)] == ["ready"] * 3
    assert box.read(3)["unblockedBy"] == [1, 2]


@pytest.mark.parametrize("fields", ['"blockedBy": [3.7]', '"blockedBy": [true]', '"blockedBy": [null]', '"status": "done-ish"',
                                    '"timeout": "soon"', '"id": 3.7', '"id": true', '"id": null',
                                    '"subject": 7', '"subject": "a", "subject": "b"'])  # fmt: skip
def test_what_has_no_certain_meaning_is_an_error_that_names_the_field(tg: Keyboard, fields: str) -> None:
    text = "{" + fields + "}"
    tg.store.path(3).write_text(text)
    field = fields.split('"')[1]
    for verb in (["get", "3"], ["update", "3", "--note", "n"], ["complete", "3"]):
        assert field in tg.refused(5, *verb)
    assert tg.store.path(3).read_text() == text
    assert tg.json("create", "x")["id"] == 4


def test_files_of_other_editors(tg: Keyboard) -> None:
    box = tg.store
    box.path(1).write_bytes(b'\xef\xbb\xbf{\r\n  "id": 1,\r\n  "subject": "bom"\r\n}\r\n')
    box.path(2).write_bytes('{"id": 2, "subject": "wide"}'.encode("utf-16"))
    box.path(3).write_bytes('{"id": 3, "subject": "é"}'.encode("latin-1"))
    assert tg.json("get", "1")["subject"] == "bom"
    tg.ok("update", "1", "--note", "n")
    assert tg.json("get", "1")["subject"] == "bom"
    for number in (2, 3):
        told = tg.refused(5, "get", str(number))
        assert f"task_{number}.json" in told
        assert "encoding" in told
    assert "task_2.json" in tg("list").err


def test_a_command_with_crlf_runs_both_lines(store: StoreBox) -> None:
    store.write(1, "echo a >> ran\r\necho b >> ran\r\n")
    store.cli("run")
    assert (store.folder / "ran").read_bytes() == b"a\nb\n"
    assert {path.name for path in (store.tasks / "logs").iterdir()} <= {"1.1.log"}


def test_replacing_a_file_keeps_its_mode_and_its_links(tg: Keyboard) -> None:
    box = tg.store
    pool = box.folder / "pool"
    pool.mkdir()
    for number in (1, 2, 3):
        box.write(number, **({"blockedBy": [1]} if number == 3 else {}))
        box.path(number).chmod(0o664)
    (pool / "2.json").write_bytes(box.path(2).read_bytes())
    box.path(2).unlink()
    box.path(2).symlink_to("../pool/2.json")
    shared = box.folder / "shared"
    box.tasks.rename(shared)
    box.tasks.symlink_to("shared")
    old = os.umask(0o077)
    try:
        tg.ok("update", "1", "--note", "n")
        tg.ok("update", "2", "--note", "n")
        tg.ok("complete", "1")
    finally:
        os.umask(old)
    assert [stat.S_IMODE((shared / f"task_{i}.json").stat().st_mode) for i in (1, 3)] == [0o664, 0o664]
    assert (shared / "task_2.json").is_symlink()
    assert '"notes": ["n"]' in (pool / "2.json").read_text()
    assert box.tasks.is_symlink()
    assert box.read(3)["unblockedBy"] == [1]


@contextmanager
def unprivileged() -> Iterator[None]:
    """Be somebody who may not write everywhere; a superuser may."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def guarded() -> Iterator[Path]:
    """A folder with a store in it that may be read but not written."""
    folder = Path(tempfile.mkdtemp(prefix="taskgraph-"))
    folder.chmod(0o755)
    tasks = folder / ".tasks"
    for path in (tasks, tasks / "logs", tasks / "run"):
        path.mkdir()
        path.chmod(0o555)
    (tasks / "task_1.json").write_text('{"id": 1, "subject": "a", "command": "true"}')
    (tasks / ".lock").touch()
    for path in (tasks / "task_1.json", tasks / ".lock"):
        path.chmod(0o444)
    tasks.chmod(0o555)
    yield folder
    tasks.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "verb",
    [["create", "x"], ["update", "1", "--note", "n"], ["complete", "1"], ["delete", "1"], ["check", "--fix"], ["run"]],
)
def test_a_store_that_may_not_be_written(tg: Keyboard, guarded: Path, verb: list[str]) -> None:
    tg.ok("create", "a", "--command", "true")
    tg(*verb)  # whatever is loaded for it is loaded now
    before = (guarded / ".tasks" / "task_1.json").read_bytes()
    with unprivileged():
        shown = tg("-C", str(guarded), "list", "--json")
        told = tg("-C", str(guarded), *verb)
    assert [row["state"] for row in shown.document] == ["ready"]
    assert told.code == 5, told
    assert told.err.count("\n") == 1, told
    assert "cannot be" in told.err
    assert (guarded / ".tasks" / "task_1.json").read_bytes() == before


def test_reading_goes_on_while_somebody_holds_the_lock(store: StoreBox) -> None:
    from taskgraph.manager import TaskManager

    store.write(1)
    with Hands(store, 4) as workers, TaskManager(store.tasks).store.locked():
        assert workers.at_once([["list"], ["get", "1"], ["status"], ["explain", "1"]]) == [0, 0, 0, 0]


def create_at_once(store: StoreBox, hands: int, each: int) -> None:
    """Create tasks from many processes: all are there, ids are unique."""
    with Hands(store, hands) as workers:
        codes = workers.at_once([["create", f"s{number}"] for number in range(hands * each)])
    assert set(codes) == {0}
    assert sorted(store.read(i)["subject"] for i in range(1, hands * each + 1)) == sorted(
        f"s{number}" for number in range(hands * each)
    )


def test_creators_at_once_get_ids_of_their_own(store: StoreBox) -> None:
    create_at_once(store, 4, 4)


@pytest.mark.slow
def test_400_creators_at_once_get_ids_of_their_own(store: StoreBox) -> None:
    create_at_once(store, 8, 50)


def claim_at_once(store: StoreBox, rounds: int) -> None:
    """Let eight claim one task; one gets it."""
    with Hands(store, 8) as workers:
        for number in range(1, rounds + 1):
            store.write(number)
            codes = workers.at_once([["claim", str(number), "--owner", f"a{hand}"] for hand in range(8)])
            assert sorted(codes) == [0, *[6] * 7]


@pytest.mark.slow
def test_of_eight_claimers_one_gets_the_task_in_50_rounds(store: StoreBox) -> None:
    claim_at_once(store, 50)


def test_the_list_stays_short_however_long_the_descriptions_are(tg: Keyboard) -> None:
    for number in range(1, 301):
        tg.store.write(number, description="x" * 3000)
    tg.store.write(7, description="y" * 2_000_000)
    assert len(tg.ok("list").out) < 60_000
    assert len(tg.ok("status").out) < 2_000
