"""What keepers wrote down, read by whoever takes their work over.

Knows the record files of keepers and the locks on files; starts and ends nothing.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from taskgraph import lines, regular

Key = tuple[int, int]
"""A task id and the number of an attempt."""


class Exit(NamedTuple):
    """How an attempt ended, as its keeper recorded it.

    Attributes:
        task: the task.
        attempt: the number of the attempt.
        facts: ``exitCode``, ``signal``, ``error``, ``maxRss`` (bytes), ``cpu`` (seconds) and ``lastLine``, where known.
        left: which of the watched files there were: ``out``, ``report``, ``beat``.
        at: when, in seconds since 1970.
    """

    task: int
    attempt: int
    facts: dict[str, Any]
    left: tuple[str, ...]
    at: float


_FACTS = {
    "exit": "exitCode",
    "signal": "signal",
    "error": "error",
    "maxRss": "maxRss",
    "cpu": "cpu",
    "lastLine": "lastLine",
}


def parse_exit(entry: dict[str, Any]) -> Exit:
    """An exit from the entry of a record."""
    facts = {name: entry[key] for key, name in _FACTS.items() if entry.get(key) not in (None, "")}
    return Exit(entry["task"], entry["attempt"], facts, tuple(entry.get("left", ())), entry["at"])


class Process(NamedTuple):
    """The first process of an attempt: its pid and its raw start time, on the system that the header describes."""

    pid: int
    ticks: int
    system: tuple[str, str, str]


@cache
def system() -> tuple[str, str, str]:
    """Which system this is: host, boot and pid namespace; a pid means something only there."""
    boot = ""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    namespace = ""
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    return os.uname().nodename, boot, namespace


class Record:
    """The record file of one keeper, read as it grows.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.header: dict[str, Any] = {}
        self.started: dict[Key, Process] = {}
        self.ended: dict[Key, Exit] = {}
        self._offset = 0

    def read(self) -> Record:
        """Take in what was written since the last time; returns itself."""
        try:
            with open(regular.open_file(self.path), "rb") as file:
                file.seek(self._offset)
                block = file.read()
        except OSError:
            return self
        whole = block[: block.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            try:
                self._take(lines.load(line))
            except ValueError:
                continue
        return self

    def _take(self, entry: dict[str, Any]) -> None:
        if "keeper" in entry:
            self.header = entry
        elif "pid" in entry:
            system = (self.header.get("host", ""), self.header.get("boot", ""), self.header.get("ns", ""))
            self.started[entry["task"], entry["attempt"]] = Process(entry["pid"], entry["ticks"], system)
        elif "at" in entry:
            self.ended[entry["task"], entry["attempt"]] = parse_exit(entry)

    def remove(self) -> None:
        """Remove the file, of a keeper that has ended."""
        with suppress(OSError):
            os.unlink(self.path)

    @property
    def alive(self) -> bool:
        """Whether the keeper lives: it holds the lock on its file."""
        return held(self.path)


def held(path: str) -> bool:
    """Whether some process holds a lock on a file; False where there is no file."""
    try:
        fd = regular.open_file(path)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
