"""The local executor: one runner's end of the line to its keeper.

Knows how to bring up a keeper, hand it jobs and hear of their ends; decides nothing.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from typing import Any, NamedTuple

from taskgraph import lines
from taskgraph.executor import keeper
from taskgraph.executor.records import Exit, Record, parse_exit, system

_PATIENCE = 1.0


class Job(NamedTuple):
    """A command to be run.

    Attributes:
        task: the task.
        attempt: the number of its attempt.
        argv: program and arguments.
        cwd: the folder to run in; None means where the keeper stands.
        env: environment variables, over those of the runner.
        log: the file for its output.
        watch: names and paths of files it may leave.
    """

    task: int
    attempt: int
    argv: list[str]
    cwd: str | None
    env: dict[str, str]
    log: str
    watch: dict[str, str]


class LocalExecutor:
    """A keeper, brought up and spoken to.

    Args:
        name: the name of the keeper: its runner's, a dot and a number.
        path: its record file, to be made.
        cwd: the folder in which commands run.

    Raises:
        OSError: the keeper could not be brought up.
    """

    def __init__(self, name: str, path: str, cwd: str) -> None:
        self.name = name
        self.record = Record(path)
        host, boot, ns = system()
        header = lines.dump({"keeper": name, "host": host, "boot": boot, "ns": ns}).decode()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, path, header],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            bufsize=0, cwd=cwd, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self.fd = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._unsent = b""
        self._unread = b""
        self._greeted = False
        os.set_blocking(self._in, False)

    def comes_up(self) -> bool:
        """Wait until the keeper holds its lock: before that, nothing may be promised to it. False if it has ended."""
        while not self._greeted:
            block = os.read(self.fd, 65536)
            if not block:
                return False
            self._unread += block
            if b"\n" in self._unread:
                self._unread = self._unread.partition(b"\n")[2]
                self._greeted = True
        return True

    def start(self, jobs: list[Job]) -> None:
        """Hand over jobs; never blocks."""
        self._unsent += b"".join([lines.dump(job._asdict()) for job in jobs])
        self.flush()

    @property
    def backlog(self) -> bool:
        """Whether jobs still wait to be handed over, since the keeper is behind."""
        return bool(self._unsent)

    @property
    def fd_in(self) -> int:
        """The descriptor that can be waited on while there is a backlog."""
        return self._in

    def flush(self) -> None:
        """Hand over what was not taken before; a keeper that is gone takes nothing."""
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._in, self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent = b""

    def hear(self) -> tuple[list[Exit], bool]:
        """The ends that the keeper has told of, and whether it still lives; call when `fd` can be read."""
        block = os.read(self.fd, 1 << 14)
        *told, self._unread = (self._unread + block).split(b"\n")
        entries: list[dict[str, Any]] = [lines.load(line) for line in told if line]
        self._greeted = self._greeted or bool(entries)
        return [parse_exit(entry) for entry in entries if "task" in entry], bool(block)

    def abandon(self) -> None:
        """Let the keeper go on alone: it ends with its last command."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def finish(self, *, forget: bool) -> None:
        """Let an idle keeper end, and wait for that, for a bounded time.

        Args:
            forget: whether nobody needs its record any more.
        """
        assert self._process.stdin is not None
        if not self._greeted:
            self._process.kill()
        self._process.stdin.close()
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        until = time.monotonic() + _PATIENCE
        while (left := until - time.monotonic()) > 0 and poll.poll(left * 1000) and os.read(self.fd, 65536):
            pass
        self.abandon()
        if left > 0:
            self._process.wait()
            if forget:
                self.record.remove()
