"""`taskgraph complete`."""

from __future__ import annotations

from typing import Annotated

import typer

from taskgraph.cli import options


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
    from taskgraph.cli.settling import report

    value = None if result is None else options.json_value(result, "--result")
    report(
        ctx.obj.where, task, (owner, attempt, force), {"outcome": "completed", "result": value},
        lambda manager, found, who: manager.complete(found, who, result=value), as_json=as_json, quiet=quiet,
    )  # fmt: skip
