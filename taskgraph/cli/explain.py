"""`taskgraph explain`."""

from __future__ import annotations

import typer

from taskgraph.cli import console, options


def command(ctx: typer.Context, task: options.OneTask, as_json: options.Json = False) -> None:
    """Say in one paragraph why a task is not running: each blocker, and what that waits for, down to the root cause."""
    from taskgraph.core.edit import resolve
    from taskgraph.core.explain import explain
    from taskgraph.manager import TaskManager

    manager = TaskManager(ctx.obj.where)
    graph = manager.snapshot()
    found = resolve(graph, task)
    told = explain(graph, found, manager.clock(), manager.vital(found)[1])
    if as_json:
        console.out_json(told)
    else:
        console.out(console.clean(told["text"]))
