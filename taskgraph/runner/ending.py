"""Ending the process of an attempt that a person has put aside, whoever started it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from taskgraph.core.task import Task
from taskgraph.executor.records import Record
from taskgraph.runner.adopt import Survey, something_lives
from taskgraph.runner.jobs import marks
from taskgraph.runner.watched import GRACE
from taskgraph.store import layout

_STEP = 0.02
_MARGIN = 3.0


def see_off(root: str, task: Task) -> bool:
    """See to it that the last attempt of a task ends with its whole tree, and wait for that, for a bounded time.

    Its runner ends it if it lives: it hears of the change by itself. Else it is ended here.

    Args:
        root: the ``.tasks`` folder.
        task: a task whose attempt has just been closed.

    Returns:
        whether nothing of it is left.
    """
    last = task.attempts[-1] if task.attempts else None
    if last is None or "process" not in last or "exitCode" in last or "signal" in last:
        return True
    if not Survey(root).runner_lives(last["process"]):
        return _end(root, task.id, last["number"], last["process"])
    record = Record(layout.keeper_path(root, last["process"]))
    return _comes_true(lambda: not something_lives(root, task.id, last["number"], record.read()), GRACE + _MARGIN)


def _end(root: str, task_id: int, number: int, process: str) -> bool:
    # Imported here: it takes psutil, and there is rarely something to end.
    from taskgraph.executor.trees import Tree

    record = Record(layout.keeper_path(root, process)).read()
    tree = Tree(record.started.get((task_id, number)), marks(root, task_id, number))
    if not tree.send(signal.SIGTERM) or _comes_true(lambda: not tree.members(), GRACE):
        return True
    return _comes_true(lambda: not tree.send(signal.SIGKILL), _MARGIN)


def _comes_true(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for something, for a bounded time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(_STEP)
    return True
