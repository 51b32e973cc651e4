"""`taskgraph delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from taskgraph.cli import console, options


def command(
    ctx: typer.Context,
    tasks: options.Tasks,
    force: Annotated[bool, typer.Option("--force", help="Unlink what depends on them.")] = False,
    cascade: Annotated[bool, typer.Option("--cascade", help="Delete what depends on them too.")] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Delete tasks, all of them or none. Refused where others depend on one, and while one is in progress."""
    from taskgraph.manager import TaskManager

    manager = TaskManager(ctx.obj.where)
    gone, freed = manager.delete(options.refs(tasks), force=force, cascade=cascade)
    if as_json:
        console.out_json({"deleted": gone, "unlinked": freed})
        return
    for task_id in gone:
        console.out(str(task_id) if quiet else f"deleted {task_id}")
    if freed and not quiet:
        ready = [task.id for task in manager.list() if task.id in freed and not task.blocked_by]
        named = f"; ready now: {', '.join(map(str, ready))}" if ready else ""
        console.note(f"taskgraph: unlinked from what was deleted: {', '.join(map(str, freed))}{named}")
