"""A run from the outside: shown while it goes on, summed up at the end. Needs no typer."""

from __future__ import annotations

import os
from typing import Any

from taskgraph.cli import console
from taskgraph.cli.place import inside
from taskgraph.cli.progress import Progress
from taskgraph.errors import RefusedError
from taskgraph.manager import TaskManager
from taskgraph.report.summary import markdown, summary
from taskgraph.runner.tick import Options, Run


def open_store(where: str | None) -> TaskManager:
    """The store for a run.

    Raises:
        RefusedError: this is inside a task of that store.
    """
    manager = TaskManager(where, by="run", durable=False)
    here = inside(manager.root)
    if here is not None:
        raise RefusedError(
            f"this is inside task {here[0]} of the same store, whose run sees what is created here by itself"
        )
    return manager


def carry_out(manager: TaskManager, *, quiet: bool, as_json: bool, slots: int = 0, **options: Any) -> int:
    """Run to the end and sum up; returns the exit code.

    Args:
        manager: the store.
        quiet: whether to print no line for each event.
        as_json: whether to sum up as JSON.
        slots: how many commands run at a time; 0 means one a core.
        **options: the rest of `runner.tick.Options`.
    """
    progress = Progress(quiet=quiet)
    run = Run(manager, Options(slots=slots or _cores(), **options), progress.event)
    with progress.showing(run):
        outcome = run.run()
    now = manager.clock()
    if as_json:
        console.out_json(outcome.as_json())
    else:
        try:
            for line in summary(run.graph, outcome, manager.root, now):
                console.out(console.clean(line))
            console.flush()
        except OSError:
            console.abandon()
    page = os.environ.get("GITHUB_STEP_SUMMARY")
    if page:
        console.append(page, markdown(run.graph, outcome, manager.root, now))
    return outcome.exit_code


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
