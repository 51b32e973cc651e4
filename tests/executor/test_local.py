"""The runner's end of the line to its keeper."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from taskgraph.executor.local import Job, LocalExecutor
from taskgraph.executor.records import Exit
from tests.conftest import until


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[LocalExecutor]:
    executor = LocalExecutor("r1.1", str(tmp_path / "k.jsonl"), str(tmp_path))
    assert executor.comes_up()
    yield executor
    executor.finish(forget=True)


def job(folder: Path, task: int, *argv: str, env: dict[str, str] | None = None) -> Job:
    return Job(task, 1, list(argv), None, env or {}, str(folder / f"{task}.1.log"), {})


def hear(executor: LocalExecutor, count: int) -> list[Exit]:
    """So many ends."""
    ends: list[Exit] = []
    while len(ends) < count:
        assert select.select([executor.fd], [], [], 20)[0], f"only {len(ends)} ends were told"
        more, lives = executor.hear()
        assert lives
        ends += more
    return ends


def test_jobs_go_in_and_ends_come_out(executor, tmp_path):
    executor.start([job(tmp_path, n, "/bin/sh", "-c", f"exit {n}") for n in range(5)])
    assert {end.task: end.facts["exitCode"] for end in hear(executor, 5)} == {n: n for n in range(5)}


def test_handing_over_never_blocks_however_busy_the_keeper_is(executor, tmp_path):
    pid = executor.record.read().header["pid"]
    os.kill(pid, signal.SIGSTOP)
    many = [job(tmp_path, n, "/bin/true", env={"PADDING": "x" * 4000}) for n in range(100)]
    executor.start(many)
    assert executor.backlog
    os.kill(pid, signal.SIGCONT)
    poll = select.poll()
    poll.register(executor.fd_in, select.POLLOUT)
    while executor.backlog:
        assert poll.poll(20_000), "the keeper takes nothing"
        executor.flush()
    assert {end.task for end in hear(executor, 100)} == set(range(100))


def test_a_keeper_that_was_killed_is_noticed_and_takes_nothing_more(executor, tmp_path):
    os.kill(executor.record.read().header["pid"], signal.SIGKILL)
    until(lambda: select.select([executor.fd], [], [], 0)[0], "the end of the keeper")
    assert executor.hear() == ([], False)
    executor.start([job(tmp_path, 1, "/bin/true")])
    assert not executor.backlog


def test_a_keeper_that_cannot_come_up_is_told(tmp_path):
    executor = LocalExecutor("r1.1", str(tmp_path / "no" / "such" / "k.jsonl"), str(tmp_path))
    assert not executor.comes_up()
    executor.abandon()


def test_a_keeper_that_comes_up_without_being_waited_for_tells_no_end(tmp_path):
    executor = LocalExecutor("r1.1", str(tmp_path / "k.jsonl"), str(tmp_path))
    assert select.select([executor.fd], [], [], 20)[0]
    assert executor.hear() == ([], True)
    assert executor.comes_up()
    executor.finish(forget=True)


def test_the_keeper_belongs_to_no_terminal_and_no_group_of_its_runner(executor):
    pid = executor.record.read().header["pid"]
    assert os.getsid(pid) == pid
    assert psutil.Process(pid).terminal() is None


def test_the_keeper_needs_nothing_but_the_standard_library(executor):
    pid = executor.record.read().header["pid"]
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import taskgraph"], capture_output=True, text=True, check=False
    )
    assert "-S" in psutil.Process(pid).cmdline()
    assert loaded.returncode != 0
