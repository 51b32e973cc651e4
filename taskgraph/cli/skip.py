"""`taskgraph skip`."""

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
    """Waive tasks: what depends on them goes on. A running process is stopped."""
    from taskgraph.cli.settling import put_aside
    from taskgraph.manager import TaskManager

    put_aside(ctx.obj.where, tasks, TaskManager.skip, "skipped", reason, as_json=as_json, quiet=quiet)
