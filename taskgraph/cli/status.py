"""`taskgraph status`."""

from __future__ import annotations

from typing import Any

import typer

from taskgraph.cli import console, options

_MOST = 10
_TELL = ("held", "stalled", "failed", "in_progress", "ready")


def command(ctx: typer.Context, as_json: options.Json = False) -> None:
    """Show where the whole graph stands: what waits for a person first, then what runs, failed, or could start."""
    from taskgraph.core.explain import why
    from taskgraph.core.rules import state
    from taskgraph.manager import TaskManager
    from taskgraph.report import view

    manager = TaskManager(ctx.obj.where)
    graph = manager.snapshot()
    now = manager.clock()
    states = {i: state(graph, task, now, manager.vital(task)[1]) for i, task in graph.tasks.items()}
    faults = [{"task": i, "fault": error.message} for i, error in graph.faults.items()]
    told = {word: [i for i, each in states.items() if each == word] for word in _TELL}
    if as_json:
        answer: dict[str, Any] = {"root": manager.root, "tasks": len(states) + len(faults)}
        console.out_json({**answer, "counts": view.counts([*states.values()]), **told, "faults": faults})
    else:
        words = [f"{count} {word}" for word, count in view.counts([*states.values()]).items()]
        console.out(f"{len(states)} tasks: {', '.join(words)}" if states else "no tasks")
        for word, ids in told.items():
            for task_id in ids[:_MOST]:
                task = graph.tasks[task_id]
                what = console.clean(task.name or task.subject)
                console.out(f"  {word:<11} {task_id} {what}: {console.clean(why(graph, task, task_id, now))}")
            if len(ids) > _MOST:
                console.out(f"  {word:<11} and {len(ids) - _MOST} more")
    console.flush()
    faulty = console.warn_faults(graph.faults.values(), manager.view_settings[1])
    if faulty:
        raise typer.Exit(options.EXIT_STORE)
