"""Process trees: all of an attempt is found and ended, and nothing else ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from taskgraph.executor.keeper import start_ticks
from taskgraph.executor.records import Process, system
from taskgraph.executor.trees import Tree, is_same
from tests.conftest import alive, until

MARKS = {"TASKGRAPH_DIR": "/some/.tasks", "TASKGRAPH_TASK_ID": "3", "TASKGRAPH_ATTEMPT": "2"}


class Nursery:
    """Starts commands as a keeper does and knows the pids they write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, script: str, marks: dict[str, str] = MARKS) -> Process:
        process = subprocess.Popen(
            ["/bin/sh", "-c", script], cwd=self.folder, env={**os.environ, **marks}, start_new_session=True
        )
        self.started.append(process)
        return Process(process.pid, start_ticks(process.pid), system())

    def pid(self, name: str) -> int:
        path = self.folder / name
        return int(until(lambda: path.exists() and path.read_text().strip(), name))


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    nursery = Nursery(tmp_path)
    yield nursery
    for path in tmp_path.iterdir():
        if path.name.startswith("pid") and path.read_text().strip().isdigit() and alive(int(path.read_text())):
            os.kill(int(path.read_text()), signal.SIGKILL)
    for process in nursery.started:
        process.kill()
        process.wait()


def kill_all(tree: Tree) -> None:
    """What the runner does once the grace is over."""

    def nothing_left() -> bool:
        tree.send(signal.SIGKILL)
        return not tree.members()

    until(nothing_left, "the tree to be gone")


def test_children_and_grandchildren_belong(nursery):
    first = nursery.start("sh -c 'sleep 60 & echo $! > pid2; wait' & echo $! > pid1; wait")
    tree = Tree(first, MARKS)
    pids = {first.pid, nursery.pid("pid1"), nursery.pid("pid2")}
    members = tree.members()
    assert {p.pid for p in members} == pids
    assert members[-1].pid == first.pid
    kill_all(tree)
    assert not any(alive(pid) for pid in pids)


def test_a_daemon_in_a_session_of_its_own_is_known_by_its_marks(nursery):
    first = nursery.start("setsid sh -c 'echo $$ > pid1; exec sleep 60 > /dev/null 2>&1' & sleep 60")
    daemon = nursery.pid("pid1")
    kill_all(Tree(first, MARKS))
    assert not alive(daemon)


def test_a_daemon_is_found_after_its_first_process_has_gone(nursery):
    first = nursery.start("setsid sh -c 'echo $$ > pid1; exec sleep 60' &")
    daemon = nursery.pid("pid1")
    nursery.started[0].wait()
    assert [p.pid for p in Tree(first, MARKS).members()] == [daemon]
    assert [p.pid for p in Tree(None, MARKS).members()] == [daemon]
    kill_all(Tree(None, MARKS))


def test_a_process_without_its_environment_is_known_as_long_as_its_session_is(nursery):
    first = nursery.start("(env -i sleep 60 & echo $! > pid1) ; sleep 60")
    orphan = nursery.pid("pid1")
    assert orphan in {p.pid for p in Tree(first, MARKS).members()}


def test_what_was_seen_once_is_not_lost_when_its_parents_go_first(nursery):
    script = "env -i sh -c 'trap \"\" TERM; echo $$ > pid1; while :; do sleep 1; done' & wait"
    first = nursery.start(script)
    stubborn = nursery.pid("pid1")
    tree = Tree(first, MARKS)
    tree.send(signal.SIGTERM)
    nursery.started[0].wait(10)
    assert alive(stubborn)
    assert stubborn in {p.pid for p in tree.members()}
    kill_all(tree)
    assert not alive(stubborn)


def test_a_stopped_process_hears_the_request_to_end(nursery):
    first = nursery.start("echo $$ > pid1; exec sleep 60")
    nursery.pid("pid1")
    os.kill(first.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(first.pid).status() == psutil.STATUS_STOPPED, "the stop")
    assert Tree(first, MARKS).send(signal.SIGTERM) == 1
    assert nursery.started[0].wait(10) == -signal.SIGTERM


@pytest.mark.parametrize("change", ["ticks", "host", "boot", "namespace"])
def test_a_process_that_is_not_certainly_the_recorded_one_is_left_alone(nursery, change):
    first = nursery.start("echo $$ > pid1; exec sleep 60", marks={})
    nursery.pid("pid1")
    host, boot, namespace = first.system
    other = {
        "ticks": first._replace(ticks=first.ticks + 1),
        "host": first._replace(system=("elsewhere", boot, namespace)),
        "boot": first._replace(system=(host, "another boot", namespace)),
        "namespace": first._replace(system=(host, boot, "pid:[1]")),
    }[change]
    assert is_same(first)
    assert not is_same(other)
    assert Tree(other, MARKS).send(signal.SIGKILL) == 0
    assert alive(first.pid)


@pytest.mark.parametrize("key", list(MARKS))
def test_a_process_of_another_attempt_task_or_store_is_left_alone(nursery, key):
    first = nursery.start("echo $$ > pid1; exec sleep 60", marks={**MARKS, key: "9"})
    pid = nursery.pid("pid1")
    assert pid not in {p.pid for p in Tree(None, MARKS).members()}
    assert alive(first.pid)


def test_whoever_asks_does_not_belong_even_with_the_marks(nursery):
    script = (
        "import sys; from taskgraph.executor.trees import Tree; "
        f"print([p.pid for p in Tree(None, {MARKS!r}).members()])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **MARKS}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
