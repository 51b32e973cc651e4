"""`taskgraph reopen`."""

from __future__ import annotations

from typing import Annotated

import typer

from taskgraph.cli import options
from taskgraph.cli.show import changed, stale_note


def command(
    ctx: typer.Context,
    tasks: Annotated[list[str] | None, typer.Argument(metavar="TASK...", help="Tasks, by id or name.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Every task that failed.")] = False,
    downstream: Annotated[bool, typer.Option("--downstream", help="Also what completed or failed below.")] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Have tasks done again, with fresh retries. Their history stays; what waits for them waits again."""
    from taskgraph.manager import TaskManager

    if not tasks and not failed:
        raise options.UsageError("name tasks, or give --failed")
    manager = TaskManager(ctx.obj.where)
    done, stale = manager.reopen(options.refs(tasks), failed=failed, downstream=downstream)
    changed(manager, done, "reopened", as_json=as_json, quiet=quiet)
    stale_note(stale)
