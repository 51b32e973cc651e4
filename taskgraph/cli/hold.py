"""`taskgraph hold`."""

from __future__ import annotations

import typer

from taskgraph.cli import options
from taskgraph.cli.show import changed


def command(
    ctx: typer.Context,
    tasks: options.Tasks,
    reason: options.Reason = "",
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Hold tasks until a person decides: they do not start, and a running process is stopped."""
    from taskgraph.manager import TaskManager

    manager = TaskManager(ctx.obj.where)
    done = manager.hold(options.refs(tasks), reason)
    options.see_off(manager, done)
    changed(manager, done, "held", as_json=as_json, quiet=quiet)
