"""The one lock of a store, with real processes: bounded, named, never inherited, never left behind."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from taskgraph.errors import EXIT_LOCKED, LockedError
from taskgraph.store import lock
from tests.store.conftest import Child, in_a_child, opened, write

Holder = Callable[..., Child]


def take(root: Path, timeout: float = 5.0) -> None:
    """Take the lock and let it go."""
    one = lock.StoreLock(str(root), timeout)
    one.acquire()
    one.release()


def test_a_holder_that_left_no_note_is_not_confused_with_the_one_before(root: Path) -> None:
    take(root, 0.3)
    with open(root / ".lock") as stranger:
        fcntl.flock(stranger, fcntl.LOCK_EX)
        with pytest.raises(LockedError, match=f"left no note \\(the last that did was pid {os.getpid()}\\)"):
            take(root, 0.1)


def test_who_waits_in_vain_is_told_who_holds_it_and_since_when(root: Path, holder: Holder) -> None:
    child = holder()
    began = time.monotonic()
    with pytest.raises(LockedError) as caught:
        take(root, 0.3)
    assert 0.25 < time.monotonic() - began < 3
    since = lock.read(str(root / ".lock"))
    assert since is not None
    assert caught.value.message == (
        f"the store is locked by pid {child.pid} since {since.since}; tried for 0.3 s and changed nothing"
    )
    assert caught.value.exit_code == EXIT_LOCKED
    child.let_go()
    take(root, 0.3)


def test_who_waits_gets_it_as_soon_as_the_holder_lets_go(root: Path, holder: Holder) -> None:
    child = holder()
    waiter = subprocess.Popen(
        [sys.executable, "-c",
         "import sys; from taskgraph.store.lock import StoreLock\n"
         "one = StoreLock(sys.argv[1], 20.0); print('trying', flush=True)\n"
         "one.acquire(); print('held', flush=True); one.release()", str(root)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert waiter.stdout is not None
    assert waiter.stdout.readline() == "trying\n"
    assert waiter.poll() is None
    child.let_go()
    assert waiter.communicate(timeout=10)[0] == "held\n"
    assert waiter.returncode == 0


def test_a_stopped_holder_keeps_it_and_the_wait_stays_bounded(root: Path, holder: Holder) -> None:
    child = holder()
    os.kill(child.pid, signal.SIGSTOP)
    with pytest.raises(LockedError, match=f"pid {child.pid}"):
        take(root, 0.3)
    os.kill(child.pid, signal.SIGCONT)
    child.let_go()
    take(root, 0.3)


def test_a_killed_holder_leaves_nothing_behind(root: Path, holder: Holder) -> None:
    child = holder()
    child.kill()
    began = time.monotonic()
    take(root)
    assert time.monotonic() - began < 5


def test_a_child_of_the_holder_does_not_inherit_it(root: Path, holder: Holder) -> None:
    child = holder(
        "quiet = {'stdin': -3, 'stdout': -3, 'stderr': -3}\n"
        "child = subprocess.Popen(['sleep', '60'], close_fds=False, **quiet)\n"
        "print(child.pid, end=' ')"
    )
    sleeper = int(child.said.split()[0])
    try:
        child.kill()
        os.kill(sleeper, 0)
        take(root, 0.5)
    finally:
        os.kill(sleeper, signal.SIGKILL)


def test_the_file_is_never_taken_away(root: Path) -> None:
    take(root)
    before = os.stat(root / ".lock").st_ino
    for _ in range(3):
        take(root)
    assert os.stat(root / ".lock").st_ino == before


def test_a_removed_lock_file_is_made_again(root: Path) -> None:
    take(root)
    (root / ".lock").unlink()
    take(root)
    assert (root / ".lock").exists()


def test_who_waited_for_a_file_that_was_removed_takes_the_one_that_is_there(root: Path, holder: Holder) -> None:
    """Else two would hold the lock: one on the old file, one on the new."""
    child = holder()
    waiter = lock.StoreLock(str(root), 10.0)
    (root / ".lock").unlink()
    waiter.acquire()
    try:
        assert in_a_child(lambda: take(root, 0.2)) != 0
    finally:
        waiter.release()
    child.let_go()


NOBODY = 2**22 + 12345
PROMISE = b"[1]\n"
GARBAGE = {
    "empty": b"",
    "a pid alone": b"12345\n",
    "words": b"somebody was here",
    "no text": bytes(range(256)),
    "zeros": b"\0" * 400,
    "six words": b"one two three four five six\n",
    "a size below nothing": b"1 host - - -7 0\n",
    "a size beyond all memory": b"1 host - - 99999999999999 0\n",
    "promises that are not there": b"1 host - - 500 0\n",
    "a dead process": f"{NOBODY} host 2026-05-01T08:00:00.000Z - 0 0".ljust(159).encode() + b"\n",
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE.keys())
def test_whatever_stands_in_the_file_only_the_kernels_lock_counts(root: Path, content: bytes) -> None:
    (root / ".lock").write_bytes(content)
    lock.read(str(root / ".lock"))
    take(root, 0.3)
    record = lock.read(str(root / ".lock"))
    assert record is not None
    assert (record.pid, record.since) == (str(os.getpid()), "-")


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE.keys())
def test_a_reader_makes_nothing_of_garbage_in_the_lock_file(root: Path, content: bytes) -> None:
    write(root, 1)
    (root / ".lock").write_bytes(content)
    store = opened(root)
    task = store.read(1)
    assert task is not None
    assert list(store.load().tasks) == [1]


@pytest.mark.parametrize("block", [b"[1]\n", b"no json\n", b"{}\n", b"[1, [0, 0, 0], {}, []]\n", b"\xff\n"])
def test_promises_that_make_no_sense_are_passed_over(root: Path, block: bytes) -> None:
    """Also with a sum that is right: a later version may have written them."""
    write(root, 1)
    head = f"1 host - - {len(block)} {zlib.crc32(block):x}".ljust(159).encode() + b"\n"
    (root / ".lock").write_bytes(head + block)
    store = opened(root)
    assert store.read(1) is not None
    with store.locked():
        pass


def test_a_folder_that_nobody_touched_since_is_known_as_undisturbed(root: Path) -> None:
    store = opened(root)
    with store.locked():
        pass
    with store.locked() as undisturbed:
        assert undisturbed
    write(root, 1)
    with store.locked() as undisturbed:
        assert not undisturbed
    with store.locked() as undisturbed:
        assert undisturbed
    (root / "task_1.json").unlink()
    with store.locked() as undisturbed:
        assert not undisturbed


def test_a_holder_that_was_killed_half_way_counts_as_a_disturbance(root: Path, holder: Holder) -> None:
    take(root)
    holder().kill()
    with opened(root).locked() as undisturbed:
        assert not undisturbed


def test_taking_the_lock_in_turn_excludes_each_other(root: Path, tmp_path: Path) -> None:
    """Four processes count up in a file, reading and writing it under the lock."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    code = (
        "import sys, pathlib; from taskgraph.store.lock import StoreLock\n"
        "one, path = StoreLock(sys.argv[1], 30.0), pathlib.Path(sys.argv[2])\n"
        "for _ in range(50):\n"
        "    one.acquire(); path.write_text(str(int(path.read_text()) + 1)); one.release()\n"
    )
    crowd = [subprocess.Popen([sys.executable, "-c", code, str(root), str(counter)]) for _ in range(4)]
    assert [each.wait(30) for each in crowd] == [0] * 4
    assert counter.read_text() == "200"
