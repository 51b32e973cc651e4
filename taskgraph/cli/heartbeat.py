"""`taskgraph heartbeat`."""

from __future__ import annotations

import typer

from taskgraph.cli import console, options


def command(
    ctx: typer.Context,
    task: options.MaybeTask = None,
    owner: options.Owner = "",
    attempt: options.AttemptNumber = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Give a sign of life for a task in progress. Takes no lock, so it may be called often."""
    from taskgraph.manager import TaskManager

    manager = TaskManager(ctx.obj.where, by=owner or None)
    ref = options.default_task(task, manager.root)
    found = manager.get(ref)
    beaten = manager.heartbeat(found.id, options.caller(manager.root, found.id, owner, attempt, False))
    if as_json:
        console.out_json({"task": beaten.id, "attempt": beaten.attempts[-1]["number"]})
    elif quiet:
        console.out(str(beaten.id))
