"""A store in a temporary folder, and hands to work it with: real commands, real processes, real files.

Nothing here sleeps for a fixed time: `until` looks again and again for what it waits for, and gives up at a deadline.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from taskgraph.core.graph import Event
from taskgraph.manager import TaskManager
from taskgraph.runner.outcome import Outcome
from taskgraph.runner.tick import Options, Run

PATIENCE = 20.0
"""Seconds after which a condition that did not come about is a failure."""


def until(condition: Callable[[], Any], what: str = "the condition", seconds: float = PATIENCE) -> Any:
    """Wait until a condition gives something true, and return that."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(0.01)
    return found


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without anything that this program reads, and with what is given."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TASKGRAPH_") and k != "GITHUB_STEP_SUMMARY"}
    return {**kept, "TERM": "dumb", "USER": "tester", **more}


def alive(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


class StoreBox:
    """A store in a folder of its own, and everything a test does to it.

    Args:
        folder: where to make it.

    Attributes:
        folder: the folder that holds the store; commands run there.
        tasks: its ``.tasks``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tasks = folder / ".tasks"
        for name in (self.tasks, self.tasks / "run", self.tasks / "logs"):
            name.mkdir(parents=True, exist_ok=True)
        (self.tasks / ".highwatermark").write_text("0\n")
        self._background: list[subprocess.Popen[bytes]] = []

    # Files

    def path(self, task_id: int) -> Path:
        """The file of a task."""
        return self.tasks / f"task_{task_id}.json"

    def write(self, task_id: int, command: str | list[str] | None = None, **fields: Any) -> None:
        """Write a task file as a person would; fields by their JSON names."""
        data = {"id": task_id, "subject": f"task {task_id}", **fields}
        if command is not None:
            data["command"] = command
        beside = self.tasks / f".{task_id}.new"
        beside.write_text(json.dumps(data, indent=2) + "\n")
        os.replace(beside, self.path(task_id))

    def read(self, task_id: int) -> dict[str, Any]:
        """A task file as it stands; a start may stand in the lock file only, for a moment."""
        found: dict[str, Any] = json.loads(self.path(task_id).read_text())
        return found

    def shown(self, task_id: int) -> dict[str, Any]:
        """A task as every reader sees it, without the cost of a process."""
        return dict(TaskManager(self.tasks).get(task_id).data)

    def status(self, task_id: int) -> str:
        """The stored status of a task."""
        return str(self.shown(task_id).get("status", "pending"))

    def statuses(self) -> dict[int, str]:
        """The stored status of every task."""
        return {task.id: task.status for task in TaskManager(self.tasks).list()}

    def outcomes(self, task_id: int) -> list[str]:
        """How the attempts of a task ended, the oldest first."""
        return [attempt.get("outcome", "") for attempt in self.shown(task_id).get("attempts", [])]

    def last(self, task_id: int) -> dict[str, Any]:
        """The last attempt of a task."""
        attempt: dict[str, Any] = self.shown(task_id)["attempts"][-1]
        return attempt

    def log(self, task_id: int, attempt: int = 1) -> bytes:
        """What an attempt wrote."""
        return (self.tasks / "logs" / f"{task_id}.{attempt}.log").read_bytes()

    def lines(self, name: str) -> list[str]:
        """The lines of a file in the folder, none where it is not there yet."""
        try:
            return (self.folder / name).read_text().splitlines()
        except FileNotFoundError:
            return []

    def number_in(self, name: str) -> int:
        """Wait for a file in the folder that holds a whole number and a line end, such as a pid."""

        def found() -> int:
            lines = self.lines(name)
            return int(lines[0]) if lines and lines[0].strip().isdigit() else 0

        return int(until(found, f"a number in {name}"))

    def events(self) -> list[dict[str, Any]]:
        """The whole history."""
        path = self.tasks / "events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    # Commands

    def command(self, *arguments: str) -> list[str]:
        """The arguments that start the program as a process of its own."""
        return [sys.executable, "-m", "taskgraph", *arguments]

    def cli(self, *arguments: str, env: dict[str, str] | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.command(*arguments), cwd=self.folder, env=env or clean_environment(),
            **{"timeout": 60, "capture_output": True, "text": True, "stdin": subprocess.DEVNULL, **more},
        )  # fmt: skip

    def run(self, *arguments: str, expect: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
        """Do `taskgraph run` to its end and see to its exit code."""
        done = self.cli("run", *arguments, **more)
        assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *arguments: str, **more: Any) -> subprocess.Popen[bytes]:
        """Begin `taskgraph run` in the background; what it says goes to ``said`` in the folder."""
        with open(self.folder / "said", "ab") as said:
            options = {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": said, "env": clean_environment()}
            process = subprocess.Popen(self.command("run", *arguments), cwd=self.folder, **{**options, **more})
        self._background.append(process)
        return process

    def go(self, *, clock: Callable[[], float] = time.time, tell: Callable[[Event], None] = lambda _: None,
           **options: Any) -> Outcome:  # fmt: skip
        """The same as `run` inside of this process, with a short grace."""
        manager = TaskManager(self.tasks, by="run", durable=False, clock=clock)
        return Run(manager, Options(**{"slots": 2, "grace": 0.5, **options}), tell).run()

    # Waiting

    def wait_for_status(self, task_id: int, *statuses: str, seconds: float = PATIENCE) -> None:
        """Wait until a task has one of the statuses."""
        until(lambda: self.status(task_id) in statuses, f"task {task_id} to be {' or '.join(statuses)}", seconds)

    def wait_for(self, name: str, lines: int = 1, seconds: float = PATIENCE) -> list[str]:
        """Wait until a file in the folder has at least so many lines."""
        found: list[str] = until(
            lambda: len(got := self.lines(name)) >= lines and got, f"{lines} lines in {name}", seconds
        )
        return found

    def ends(self, process: subprocess.Popen[bytes], seconds: float = PATIENCE) -> int:
        """Wait for a process to end; its exit code."""
        return process.wait(seconds)

    # Processes

    def processes(self) -> list[psutil.Process]:
        """What lives of this store: commands of its tasks and what they left, keepers, and runs."""
        return [p for p in psutil.process_iter() if p.pid != os.getpid() and self._is_ours(p)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            marked = process.environ().get("TASKGRAPH_DIR") == str(self.tasks)
            return marked or any(str(self.tasks) in word for word in process.cmdline())
        except (psutil.Error, OSError):
            return False

    def keepers(self) -> list[psutil.Process]:
        """The keepers that live."""
        return [p for p in self.processes() if _is_keeper(p)]

    def work(self) -> list[psutil.Process]:
        """What lives of the commands of tasks."""
        keepers = {p.pid for p in self.keepers()}
        return [p for p in self.processes() if p.pid not in keepers]

    def wait_until_nothing_lives(self, seconds: float = PATIENCE) -> None:
        """Wait until no process of this store is left."""
        until(lambda: not self.processes(), f"{self.processes()} to end", seconds)

    def close(self) -> None:
        """End what a test left running."""
        for process in self._background:
            if process.poll() is None:
                with suppress(OSError):
                    process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(10)
        for _ in range(50):
            left = self.processes()
            for each in left:
                with suppress(psutil.Error):
                    each.kill()
            if not left:
                return
            psutil.wait_procs(left, 0.2)


def _is_keeper(process: psutil.Process) -> bool:
    try:
        return any(word.endswith("keeper.py") for word in process.cmdline()[:5])
    except psutil.Error:
        return False


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[StoreBox]:
    """An empty store; whatever a test leaves running is ended."""
    for name in [name for name in os.environ if re.match("TASKGRAPH_|GITHUB_STEP_SUMMARY$", name)]:
        monkeypatch.delenv(name)
    folder = tmp_path / "s"
    folder.mkdir()
    box = StoreBox(folder)
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(300 if request.node.get_closest_marker("slow") else 60)
    yield box
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    box.close()


def _too_long(*_: object) -> None:
    raise AssertionError("the test hangs")


@pytest.fixture
def gate(store: StoreBox) -> Iterator[Gate]:
    """A gate that commands wait at."""
    gate = Gate(store.folder / "gate")
    yield gate
    gate.open()


class Gate:
    """Something that commands wait for: ``wait`` is shell text that goes on once the gate has been opened.

    Args:
        path: the file that stands for it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.wait = f"while [ ! -e {path} ]; do sleep 0.02; done"

    def open(self) -> None:
        """Let everybody through."""
        with suppress(FileNotFoundError):
            self.path.touch()


class SmallDisk:
    """A file system of very little room.

    Args:
        path: where it is mounted.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, *files: Path) -> None:
        """Leave no room at all, not even behind the ends of some files in their last blocks."""
        block = os.statvfs(self.path).f_bsize
        for file in files:
            size = file.stat().st_size
            with open(file, "ab") as tail:
                tail.write(b"\n" * (-size % block))
        with suppress(OSError), open(self._ballast, "ab", buffering=0) as ballast:
            while True:
                ballast.write(b"\0" * block)

    def make_room(self) -> None:
        """Take away what filled it."""
        self._ballast.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A small disk, where mounting is allowed."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(path)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield SmallDisk(path)
    subprocess.run(["umount", "-l", str(path)], check=False)
