"""`taskgraph init`."""

from __future__ import annotations

import os

import typer

from taskgraph.cli import console
from taskgraph.cli.options import Json


def command(ctx: typer.Context, as_json: Json = False) -> None:
    """Make a store: a .tasks folder here, or where -C or TASKGRAPH_DIR says. One that exists stays as it is."""
    from taskgraph.store import files, layout

    root = layout.expected(ctx.obj.where or os.environ.get("TASKGRAPH_DIR"), os.getcwd())
    made = files.make(root)
    if as_json:
        console.out_json({"root": root, "made": made})
    else:
        shown = console.clean(root)
        console.out(f"made {shown}" if made else f"{shown} exists already")
