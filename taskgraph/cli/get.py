"""`taskgraph get`."""

from __future__ import annotations

import typer

from taskgraph.cli import options


def command(ctx: typer.Context, task: options.OneTask, as_json: options.Json = False) -> None:
    """Show one task: what its file holds and what follows from it. With --json, one object."""
    from taskgraph.cli.card import show

    show(ctx.obj.where, task, as_json=as_json)
