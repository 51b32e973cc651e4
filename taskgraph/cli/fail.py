"""`taskgraph fail`."""

from __future__ import annotations

import typer

from taskgraph.cli import options


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
    from taskgraph.cli.settling import report

    report(
        ctx.obj.where, task, (owner, attempt, force), {"outcome": "failed", "reason": reason},
        lambda manager, found, who: manager.fail(found, who, reason=reason), as_json=as_json, quiet=quiet,
    )  # fmt: skip
