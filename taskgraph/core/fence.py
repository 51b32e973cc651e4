"""Who may report on a task: the owner, with the attempt that is current.

Pure; a caller is described by its name and by the attempt it believes to be working on.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from taskgraph.core.moves import holder
from taskgraph.core.retry import FREE
from taskgraph.core.status import IN_PROGRESS
from taskgraph.core.task import Task
from taskgraph.errors import RefusedError


class Caller(NamedTuple):
    """Somebody who reports.

    Attributes:
        owner: the name given, empty for somebody who gave none.
        attempt: the number of the attempt it works on, None where none was given.
        force: whether the fence is to be overridden.
    """

    owner: str = ""
    attempt: int | None = None
    force: bool = False


ANYBODY: Final = Caller()
"""Somebody who gave neither a name nor an attempt."""


def check(task: Task, caller: Caller) -> None:
    """Let the current attempt and the owner pass.

    Raises:
        RefusedError: the attempt is superseded, or the task is somebody else's; names the present owner.
    """
    if caller.force:
        return
    current = task.current
    if caller.attempt is not None:
        if current is None or current["number"] != caller.attempt or task.status != IN_PROGRESS:
            raise _refused(task, f"attempt {caller.attempt} of {task.title} is no longer current: {_stands(task)}")
        if caller.owner and task.owner and caller.owner != task.owner:
            raise _refused(task, f"{task.title} belongs to {task.owner}, not to {caller.owner}")
        return
    if task.status != IN_PROGRESS:
        _check_late(task, caller)
    elif current is not None and "process" in current:
        raise _refused(
            task,
            f"{task.title} is being run (attempt {current['number']}); wait for it, stop it with "
            f"'taskgraph cancel {task.id}', or use --force",
        )
    elif task.owner and caller.owner != task.owner:
        you = f"not to {caller.owner}" if caller.owner else "and no --owner was given"
        raise _refused(task, f"{task.title} belongs to {holder(task)}, {you} (--force overrides)")


def _check_late(task: Task, caller: Caller) -> None:
    """Refuse a report from somebody whose attempt was ended by others in the meantime."""
    last = task.attempts[-1] if task.attempts else None
    if not caller.owner or last is None:
        return
    mine = [a for a in task.tries if a.get("owner") == caller.owner]
    superseded = bool(mine) and mine[-1].get("outcome") not in FREE
    if superseded or (task.owner and task.owner != caller.owner and "process" not in last):
        raise _refused(task, f"{caller.owner} no longer works on {task.title}: {_stands(task)}")


def _stands(task: Task) -> str:
    return f"it is with {holder(task)}" if task.status == IN_PROGRESS else f"it is {task.status}"


def _refused(task: Task, message: str) -> RefusedError:
    current = task.current
    return RefusedError(
        message, task=task.id, owner=task.owner, status=task.status, attempt=current["number"] if current else None
    )
