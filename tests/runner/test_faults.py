"""A store that can no longer be written while a run goes on: one sentence, and a later run takes up."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import StoreBox, alive, until


@pytest.fixture
def small_store(small_disk) -> Iterator[StoreBox]:
    """A store on a small disk."""
    folder = small_disk.path / "s"
    folder.mkdir()
    box = StoreBox(folder)
    yield box
    box.close()


def sentence(said: str) -> str:
    """The one sentence that a fault is told in."""
    assert "Traceback" not in said
    told = [line for line in said.splitlines() if line.startswith("taskgraph:")]
    assert len(told) == 1, said
    return told[0]


def test_a_disk_that_fills_up_ends_the_run_and_not_the_work(small_store, small_disk, tmp_path):
    store = small_store
    said, outside = tmp_path / "said", tmp_path
    store.write(
        1, f"echo $$ > {outside}/pid; while [ ! -e {outside}/go ]; do sleep 0.02; done; echo 1 >> {outside}/over"
    )
    for n in range(2, 12):
        store.write(n, f"while [ ! -e {outside}/full ]; do sleep 0.02; done; echo {n} >> {outside}/over")
    with open(said, "wb") as file:
        run = store.start("-j", "2", stdout=file, stderr=file)
    until(lambda: (outside / "pid").exists() and (outside / "pid").read_text(), "the work")
    small_disk.fill(store.tasks / "events.jsonl", store.tasks / ".lock")
    (outside / "full").touch()
    assert store.ends(run) == 5
    assert "No space left" in sentence(said.read_text())
    pid = int((outside / "pid").read_text())
    assert alive(pid)
    done = store.cli("run")
    assert done.returncode == 5
    assert "No space left" in sentence(done.stderr)
    small_disk.make_room()
    (outside / "go").touch()
    store.run("-j", "2")
    assert set(store.statuses().values()) == {"completed"}
    assert sorted(map(int, (outside / "over").read_text().split())) == list(range(1, 12))
    assert all(store.outcomes(n) == ["completed"] for n in range(1, 12))


def test_a_full_disk_at_the_start_is_told_in_one_sentence(small_store, small_disk):
    small_store.write(1, "true")
    small_disk.fill()
    done = small_store.cli("run")
    assert done.returncode == 5
    sentence(done.stderr)
    small_disk.make_room()
    small_store.run()


def make_immutable(folder: Path, *, yes: bool) -> bool:
    """Let nothing be changed in a folder, as on a disk that has become read-only; False where that is not possible."""
    if os.getuid() != 0:
        for each in (folder, *folder.rglob("*")):
            os.chmod(each, (0o555 if each.is_dir() else 0o444) if yes else (0o755 if each.is_dir() else 0o644))
        return True
    if shutil.which("chattr") is None:
        return False
    files = [
        str(folder),
        *(str(p) for p in folder.rglob("*") if p.suffix not in (".log", ".jsonl") or p.name == "events.jsonl"),
    ]
    return subprocess.run(["chattr", "+i" if yes else "-i", *files], capture_output=True, check=False).returncode == 0


def test_a_store_that_becomes_read_only_ends_the_run_and_a_later_one_takes_up(store, gate):
    store.write(1, f"echo $$ > pid1; {gate.wait}; echo 1 >> over")
    store.write(2, "echo 2 >> over", blockedBy=[1])
    run = store.start()
    pid = store.number_in("pid1")
    until(lambda: store.read(1).get("status") == "in_progress", "the start in the file")
    possible = make_immutable(store.tasks, yes=True)
    try:
        if not possible:
            pytest.skip("no way to make a folder read-only here")
        gate.open()
        assert store.ends(run) == 5
        sentence((store.folder / "said").read_text())
        done = store.cli("run")
        assert done.returncode == 5
        sentence(done.stderr)
        assert store.cli("list").returncode == 0
    finally:
        make_immutable(store.tasks, yes=False)
    until(lambda: not alive(pid), "the work to end")
    store.run()
    assert store.lines("over") == ["1", "2"]
    assert store.outcomes(1) == ["completed"]


@pytest.mark.slow
def test_a_lock_that_another_process_keeps_too_long_is_named(store):
    store.write(1, "true")
    store.run()
    fd = os.open(store.tasks / ".lock", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        run = store.start()
        assert store.ends(run, 30) == 7
    finally:
        os.close(fd)
    assert "locked" in sentence((store.folder / "said").read_text())
