"""`taskgraph claim`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from taskgraph.cli import console, options
from taskgraph.errors import NothingToDo

_STEP = 0.05


def command(
    ctx: typer.Context,
    task: Annotated[str | None, typer.Argument(metavar="[TASK]", help="A task; without one, the best.")] = None,
    owner: options.Owner = "",
    worker: Annotated[str, typer.Option(metavar="NAME", help="Take a task of this worker.")] = "",
    wait: Annotated[float, typer.Option(metavar="S", help="Wait this many seconds for one to be ready.")] = 0.0,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Take a task to work on, and print it. The number of its attempt is what later reports carry.

    Without a task: the best manual task that is ready, by priority, then by id. With nothing to give it exits with 3.
    """
    from taskgraph.manager import TaskManager
    from taskgraph.report.view import as_json as view

    manager = TaskManager(ctx.obj.where, by=owner or None)
    until = time.monotonic() + options.seconds(wait, "--wait")
    while True:
        seen = manager.store.history.size()
        try:
            taken = manager.claim(task, owner, worker=worker, force=force)
            break
        except NothingToDo:
            # Only something new in the history, or a retry or a lease that ends, can make a task ready.
            step = time.monotonic() + 1.0
            while manager.store.history.size() == seen and time.monotonic() < min(step, until):
                time.sleep(_STEP)
            if time.monotonic() >= until:
                raise
    number = taken.attempts[-1]["number"]
    if as_json:
        console.out_json({**view(manager.store.lazy(), taken, manager.clock(), (0.0, False)), "attempt": number})
    elif quiet:
        console.out(str(taken.id))
    else:
        console.out(f"claimed {taken.id} {console.clean(taken.name or taken.subject)} (attempt {number})")
