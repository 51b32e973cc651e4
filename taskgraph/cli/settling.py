"""What the verbs share that settle a task by somebody's word: complete and fail, skip, cancel and hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taskgraph.cli import console, options
from taskgraph.cli.place import inside
from taskgraph.cli.show import changed
from taskgraph.core.fence import Caller, check
from taskgraph.core.task import Task
from taskgraph.errors import RefusedError
from taskgraph.manager import TaskManager


def report(
    where: str | None,
    ref: str | None,
    who: tuple[str, int | None, bool],
    said: dict[str, Any],
    act: Callable[[TaskManager, int, Caller], Task],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Report how a task ended; from inside a running attempt that is kept until its exit settles it.

    Args:
        where: the store.
        ref: the task; None means the one inside which the command runs.
        who: owner, attempt and force, as they were given.
        said: what is kept of a report from inside.
        act: what is done of a report from outside.
        as_json: print JSON.
        quiet: print the id alone.
    """
    manager = TaskManager(where, by=who[0] or None)
    found = manager.get(options.default_task(ref, manager.root))
    caller = options.caller(manager.root, found.id, *who)
    if kept(manager, found, caller, said):
        changed(manager, [found], "reported", as_json=as_json, quiet=quiet, one=True)
        return
    done = act(manager, found.id, caller)
    if caller.force:
        see_off(manager, [done])
    asked = said["outcome"]
    word = asked if done.status == asked else f"{asked}, now {done.status}:"
    changed(manager, [done], word, as_json=as_json, quiet=quiet, one=True)


def put_aside(
    where: str | None,
    refs: list[str],
    act: Callable[..., list[Task]],
    word: str,
    reason: str,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Skip, cancel or hold tasks, and stop what runs for them."""
    manager = TaskManager(where)
    done = act(manager, options.refs(refs), reason)
    see_off(manager, done)
    changed(manager, done, word, as_json=as_json, quiet=quiet)


def see_off(manager: TaskManager, tasks: list[Task]) -> None:
    """Stop the processes of tasks that were put aside.

    Raises:
        RefusedError: one cannot be stopped from here.
    """
    if not any(task.attempts for task in tasks):
        return
    from taskgraph.runner.ending import see_off as end

    left = [task for task in tasks if not end(manager.root, task)]
    if left:
        names = ", ".join(str(task.id) for task in left)
        raise RefusedError(f"the process of {names} is still there; the status is changed all the same")


def kept(manager: TaskManager, task: Task, who: Caller, said: dict[str, Any]) -> bool:
    """Keep what a running attempt says about itself, if it is one that speaks; its exit settles it.

    Raises:
        RefusedError: the attempt is superseded.
    """
    here = inside(manager.root)
    if here is None or here[0] != task.id or who.attempt != here[1]:
        return False
    check(task, who)
    current = task.current
    if current is None or "process" not in current:
        return False
    from taskgraph.runner.jobs import report as keep

    keep(manager.root, task.id, here[1], said)
    console.note(f"taskgraph: kept; task {task.id} is settled when its command ends")
    return True
