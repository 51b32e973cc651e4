"""`taskgraph complete`."""

from __future__ import annotations

from typing import Annotated

import typer

from taskgraph.cli import console, options
from taskgraph.cli.show import changed


def command(
    ctx: typer.Context,
    task: options.MaybeTask = None,
    result: Annotated[str | None, typer.Option(metavar="JSON", help="What the task answers.")] = None,
    owner: options.Owner = "",
    attempt: options.AttemptNumber = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Complete a task; what waits for it is told at once. Inside a running task its exit still settles it."""
    from taskgraph.manager import TaskManager

    manager = TaskManager(ctx.obj.where)
    value = None if result is None else options.json_value(result, "--result")
    found = manager.get(options.default_task(task, manager.root))
    who = options.caller(manager.root, found.id, owner, attempt, force)
    if options.report_from_inside(manager, found, who, {"outcome": "completed", "result": value}):
        console.note(f"taskgraph: kept; task {found.id} is settled when its command ends")
        changed(manager, [found], "reported", as_json=as_json, quiet=quiet, one=True)
        return
    done = manager.complete(found.id, who, result=value)
    if force:
        options.see_off(manager, [done])
    changed(manager, [done], "completed", as_json=as_json, quiet=quiet, one=True)
