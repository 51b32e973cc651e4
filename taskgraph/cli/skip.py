"""`taskgraph skip`."""

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
    """Waive tasks: what depends on them goes on. A running process is stopped."""
    from taskgraph.manager import TaskManager

    manager = TaskManager(ctx.obj.where)
    done = manager.skip(options.refs(tasks), reason)
    options.see_off(manager, done)
    changed(manager, done, "skipped", as_json=as_json, quiet=quiet)
