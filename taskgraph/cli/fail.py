"""`taskgraph fail`."""

from __future__ import annotations

import typer

from taskgraph.cli import console, options
from taskgraph.cli.show import changed


def command(
    ctx: typer.Context,
    task: options.MaybeTask = None,
    reason: options.Reason = "",
    owner: options.Owner = "",
    attempt: options.AttemptNumber = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Report that a task failed. An attempt under way is followed by another while retries are left."""
    from taskgraph.manager import TaskManager

    manager = TaskManager(ctx.obj.where)
    found = manager.get(options.default_task(task, manager.root))
    who = options.caller(manager.root, found.id, owner, attempt, force)
    if options.report_from_inside(manager, found, who, {"outcome": "failed", "reason": reason}):
        console.note(f"taskgraph: kept; task {found.id} is settled when its command ends")
        changed(manager, [found], "reported", as_json=as_json, quiet=quiet, one=True)
        return
    done = manager.fail(found.id, who, reason=reason)
    if force:
        options.see_off(manager, [done])
    word = "failed" if done.status == "failed" else f"failed, now {done.status}:"
    changed(manager, [done], word, as_json=as_json, quiet=quiet, one=True)
