"""An empty store in a temporary folder, and children that are killed at a chosen moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from taskgraph.store import files

KILLED = 77


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The ``.tasks`` folder of an empty store."""
    folder = tmp_path / ".tasks"
    files.make(str(folder))
    return folder


def write(root: Path, task_id: int, **values: Any) -> Path:
    """A task file as an editor saves it: a new file with the name of the old one."""
    path = root / f"task_{task_id}.json"
    beside = root / f"draft-{task_id}"
    beside.write_text(json.dumps({"id": task_id, "subject": f"T{task_id}", **values}))
    os.replace(beside, path)
    return path


def read(root: Path, task_id: int) -> dict[str, Any]:
    """What stands in a task file."""
    found: dict[str, Any] = json.loads((root / f"task_{task_id}.json").read_bytes())
    return found


def opened(root: Path, **options: Any) -> files.Store:
    """The store, as one more process would open it."""
    return files.Store(str(root), **{"durable": False, "lock_timeout": 5.0, **options})


def in_a_child(act: Callable[[], object]) -> int:
    """Do something in a forked process; its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@contextmanager
def killed_before_call(number: int) -> Iterator[None]:
    """Within, the process dies as if killed just before the so-manyth call that changes a file."""
    left = number

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os._exit(KILLED)
            return real(*args, **kwargs)

        return call

    with mock.patch.multiple(
        os, **{name: counted(getattr(os, name)) for name in ("write", "pwrite", "replace", "unlink")}
    ):
        yield


def killed_at_every_moment(prepare: Callable[[], None], act: Callable[[], object]) -> Iterator[int]:
    """Do something again and again, each time killed one moment later, until it is let through; the moments."""
    for moment in range(1, 200):
        prepare()

        def until_killed(moment: int = moment) -> None:
            with killed_before_call(moment):
                act()

        code = in_a_child(until_killed)
        assert code in (0, KILLED), f"the child failed by itself before moment {moment}"
        yield moment
        if code == 0:
            assert moment > 3
            return
    raise AssertionError("it never came to an end")


class Child:
    """A process that holds the lock until it is told to let go.

    Args:
        root: the store.
        extra: what it does, as Python, once it holds the lock.
    """

    def __init__(self, root: Path, extra: str = "") -> None:
        code = (
            "import os, sys, subprocess\n"
            "from taskgraph.store.lock import StoreLock\n"
            "lock = StoreLock(sys.argv[1], 5.0)\n"
            f"lock.acquire()\n{extra}\n"
            "print('held', flush=True)\n"
            "sys.stdin.readline()\n"
            "lock.release()\n"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().strip()
        assert self.said.endswith("held")

    @property
    def pid(self) -> int:
        """Its pid."""
        return self.process.pid

    def let_go(self) -> None:
        """Have it let go and end."""
        self.process.communicate("\n", timeout=10)
        assert self.process.returncode == 0

    def kill(self) -> None:
        """Kill it, however it stands."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def holder(root: Path) -> Iterator[Callable[..., Child]]:
    """Makes processes that hold the lock."""
    made: list[Child] = []

    def make(extra: str = "") -> Child:
        made.append(Child(root, extra))
        return made[-1]

    yield make
    for child in made:
        if child.process.poll() is None:
            child.kill()
