"""`taskgraph release`."""

from __future__ import annotations

import typer

from taskgraph.cli import options
from taskgraph.cli.show import changed


def command(
    ctx: typer.Context,
    tasks: options.Tasks,
    owner: options.Owner = "",
    attempt: options.AttemptNumber = None,
    reason: options.Reason = "",
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Give tasks back: claimed ones at no cost to their retries, held ones to go on."""
    from taskgraph.cli.settling import see_off
    from taskgraph.core.fence import Caller
    from taskgraph.manager import TaskManager

    manager = TaskManager(ctx.obj.where, by=owner or None)
    done = manager.release(options.refs(tasks), Caller(owner, attempt, force), reason=reason)
    if force:
        see_off(manager, done)
    changed(manager, done, "released", as_json=as_json, quiet=quiet)
