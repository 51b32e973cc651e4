"""Signs of life: files in `run/` and logs whose times tell when work last stirred. Takes no lock."""

from __future__ import annotations

import os

from taskgraph.core.fields import parse_time
from taskgraph.core.limits import Limits
from taskgraph.core.status import IN_PROGRESS
from taskgraph.core.task import Task
from taskgraph.store import layout


def _time(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def touch(root: str, task_id: int, attempt: int) -> None:
    """Beat for an attempt.

    Raises:
        OSError: the store cannot be written.
    """
    path = layout.run_path(root, task_id, attempt, "beat")
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.utime(fd)
    finally:
        os.close(fd)


def traces(root: str, task_id: int, attempt: int) -> tuple[float, float]:
    """The times of the log and of the beat of an attempt: what changes when it stirs."""
    return _time(layout.log_path(root, task_id, attempt)), _time(layout.run_path(root, task_id, attempt, "beat"))


def last(root: str, task: Task, *, by_work_alone: bool) -> float:
    """The last sign of life of the work under way, by file times, in seconds since 1970.

    A ``heartbeatAt`` that a person wrote holds until the work beats again.

    Args:
        root: the ``.tasks`` folder.
        task: a task in progress.
        by_work_alone: whether only the work itself beats (it has a stall limit), or its runner as well.
    """
    written = _time(layout.task_path(root, task.id))
    current = task.current
    if current is None:
        return parse_time(task.heartbeat_at) if task.heartbeat_at else written
    number = current["number"]
    signs = [
        _time(layout.log_path(root, task.id, number)),
        _time(layout.run_path(root, task.id, number, "beat")),
        parse_time(current["startedAt"]) if "startedAt" in current else 0.0,
    ]
    process = current.get("process")
    if process and not by_work_alone:
        signs.append(_time(layout.runner_path(root, runner_of(process))))
    latest = max(signs)
    return parse_time(task.heartbeat_at) if task.heartbeat_at and written >= latest else latest


def vital(root: str, task: Task, limits: Limits, now: float) -> tuple[float, bool]:
    """The last sign of life of a task in progress, in seconds since 1970, and whether it is older than its limit."""
    if task.status != IN_PROGRESS:
        return 0.0, False
    sign = last(root, task, by_work_alone=bool(limits.stall_timeout))
    limit = limits.stall_timeout or (limits.lease if task.owner and not task.runs else 0)
    return sign, bool(limit) and now - sign > limit


def runner_of(process: str) -> str:
    """The runner that started an attempt, from what its attempt records."""
    return process.partition(".")[0]


def clock(root: str) -> float:
    """The present by the clock that stamps the files of the store: the time of a file just touched there."""
    path = f"{root}/run/clock"
    os.makedirs(f"{root}/run", exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.utime(fd)
        return os.fstat(fd).st_mtime
    finally:
        os.close(fd)
