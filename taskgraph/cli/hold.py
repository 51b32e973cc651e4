"""`taskgraph hold`."""

from __future__ import annotations

import typer

from taskgraph.cli import options


def command(
    ctx: typer.Context,
    tasks: options.Tasks,
    reason: options.Reason = "",
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Hold tasks until a person decides: they do not start, and a running process is stopped."""
    from taskgraph.cli.settling import put_aside
    from taskgraph.manager import TaskManager

    put_aside(ctx.obj.where, tasks, TaskManager.hold, "held", reason, as_json=as_json, quiet=quiet)
