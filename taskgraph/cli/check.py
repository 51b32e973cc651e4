"""`taskgraph check`."""

from __future__ import annotations

from typing import Annotated

import typer

from taskgraph.cli import console, options


def command(
    ctx: typer.Context,
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended without loss.")] = False,
    as_json: options.Json = False,
) -> None:
    """Name every fault of the store; exits with 1 if there is any. With --fix, the ones that stay."""
    from taskgraph.check import inspect, mend
    from taskgraph.manager import TaskManager

    manager = TaskManager(ctx.obj.where)
    mended = mend(manager) if fix else []
    faults = inspect(manager)
    if as_json:
        rows = [fault._asdict() for fault in faults]
        console.out_json({"faults": rows, "mended": [fault._asdict() for fault in mended]})
    else:
        for fault in mended:
            console.out(f"mended: {console.clean(fault.text)}")
        for fault in faults:
            hint = " (--fix mends this)" if fault.mendable and not fix else ""
            console.out(f"{console.clean(fault.text)}{hint}")
        if not faults:
            console.out("no faults" + (" left" if mended else ""))
    if faults:
        raise typer.Exit(options.EXIT_FAILED)
