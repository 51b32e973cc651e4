"""Process trees: who belongs to an attempt, and how all of it is ended.

A process belongs to an attempt if it descends from its first process, lives in its session, carries its marks in its
environment, or was seen to belong before. Nothing is signalled unless its identity is certain.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress

import psutil

from taskgraph.executor.keeper import start_ticks
from taskgraph.executor.records import Process, Record, system


def is_same(process: Process) -> bool:
    """Whether the process that was recorded still lives, and is the one that was recorded."""
    if process.system != system():
        return False
    if not psutil.pid_exists(process.pid):
        return False
    return start_ticks(process.pid) == process.ticks


class Tree:
    """All processes of one attempt.

    Args:
        first: its first process, where it is known.
        marks: environment variables that only its processes carry together.
    """

    def __init__(self, first: Process | None, marks: Mapping[str, str]) -> None:
        self.first = first
        self.marks = marks
        self._seen: dict[int, int] = {}

    def members(self) -> list[psutil.Process]:
        """The processes that belong to the attempt now, the first one last."""
        found: dict[int, psutil.Process] = {}
        first = self.first
        session = first.pid if first is not None and first.system == system() else 0
        certain = first is not None and is_same(first)
        if first is not None and certain:
            with suppress(psutil.Error):
                root = psutil.Process(first.pid)
                found = {child.pid: child for child in root.children(recursive=True)}
                found[first.pid] = root
        for process in psutil.process_iter():
            if process.pid in found or process.pid == os.getpid():
                continue
            if (certain and _session(process.pid) == session) or self._known(process) or self._marked(process):
                found[process.pid] = process
        alive = [p for p in found.values() if _lives(p)]
        self._seen = {p.pid: start_ticks(p.pid) for p in alive}
        return sorted(alive, key=lambda p: first is not None and p.pid == first.pid)

    def _known(self, process: psutil.Process) -> bool:
        """Whether it was seen before: with its environment cleared and its parents gone, nothing else tells."""
        ticks = self._seen.get(process.pid)
        return bool(ticks) and ticks == start_ticks(process.pid)

    def _marked(self, process: psutil.Process) -> bool:
        try:
            environ = process.environ()
        except (psutil.Error, OSError):
            return False
        return all(environ.get(key) == value for key, value in self.marks.items())

    def send(self, number: signal.Signals) -> int:
        """Signal every process of the attempt once; returns how many there were."""
        members = self.members()
        if number == signal.SIGTERM and self.first is not None:
            # A shell must have its signal before what it waits for has ended, or it goes on without it.
            members.sort(key=lambda process: self.first is None or process.pid != self.first.pid)
        for process in members:
            with suppress(psutil.Error, OSError):
                process.send_signal(number)
                if number == signal.SIGTERM:
                    process.send_signal(signal.SIGCONT)
        return len(members)


def wake(record: Record) -> None:
    """Let a keeper that was stopped go on: only it can tell of the end of what was killed."""
    header = record.read().header
    if "pid" in header:
        keeper = Process(header["pid"], header["ticks"], (header["host"], header["boot"], header["ns"]))
        if is_same(keeper):
            with suppress(OSError):
                os.kill(keeper.pid, signal.SIGCONT)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
