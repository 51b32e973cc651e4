"""How verbs answer with tasks: as JSON, as ids, or as a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgraph.cli import console
from taskgraph.core.task import Task

if TYPE_CHECKING:
    from taskgraph.manager import TaskManager


def changed(
    manager: TaskManager, tasks: list[Task], word: str, *, as_json: bool, quiet: bool, one: bool = False
) -> None:
    """Tell of tasks that were changed.

    Args:
        manager: their store.
        tasks: the tasks.
        word: what was done to them.
        as_json: print their JSON.
        quiet: print their ids alone.
        one: whether the verb takes a single task, whose JSON is an object and no list.
    """
    if as_json:
        from taskgraph.report.view import as_json as view

        shown = [view(manager.store.lazy(), task, manager.clock(), manager.vital(task)) for task in tasks]
        console.out_json(shown[0] if one else shown)
        return
    for task in tasks:
        title = console.clean(task.name or task.subject)
        console.out(str(task.id) if quiet else f"{word} {task.id} {title}".rstrip())


def stale_note(stale: list[int]) -> None:
    """Say which tasks below a reopened one keep going."""
    if stale:
        names = ", ".join(map(str, stale))
        verb = "was" if len(stale) == 1 else "were"
        console.note(
            f"taskgraph: {names} {verb} done or begun with the old result and may be out of date; "
            "'reopen --downstream' has them done again too"
        )
