"""`taskgraph run`."""

from __future__ import annotations

from typing import Annotated

import typer

from taskgraph.cli import console, options


def command(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="[TASK...]", help="Run these with all they wait for.")
    ] = None,
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", metavar="N", min=0, help="Commands at a time; 0: one a core.")
    ] = 0,
    fail_fast: Annotated[bool, typer.Option("--fail-fast/--keep-going", help="End at the first failure.")] = False,
    dry_run: Annotated[bool, typer.Option("-n", "--dry-run", help="Say what would run, in which order.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Run only what is ready now, then end.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait also for people and agents.")] = False,
    max_time: Annotated[float, typer.Option(metavar="S", help="End after so many seconds; 0: no limit.")] = 0.0,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No line for each event.")] = False,
    as_json: options.Json = False,
) -> None:
    """Run what can be run, in parallel, until nothing can start without a person.

    What runs survives this command: killed at any moment, it is taken up by the next run. INT or TERM ends it in order.
    The exit code says what became of the targets: 0 all completed or skipped, 1 something failed, 3 something waits,
    5 a file could not be read.
    """
    from taskgraph.cli.running import carry_out, open_store
    from taskgraph.core.edit import resolve

    manager = open_store(ctx.obj.where)
    max_time = options.seconds(max_time, "--max-time")
    graph = manager.snapshot() if targets or dry_run else None
    wanted = [resolve(graph, ref).id for ref in options.refs(targets)] if targets and graph is not None else None
    if dry_run and graph is not None:
        _dry_run(graph, wanted, as_json=as_json)
        if console.warn_faults(graph.faults.values(), manager.view_settings[1]):
            raise typer.Exit(options.EXIT_STORE)
        return
    code = carry_out(
        manager, quiet=quiet, as_json=as_json, targets=wanted, slots=jobs, fail_fast=fail_fast, once=once, wait=wait,
        max_time=max_time,
    )  # fmt: skip
    raise typer.Exit(code)


def _dry_run(graph: options.Graph, wanted: list[int] | None, *, as_json: bool) -> None:
    from taskgraph.core.schedule import plan

    scope = None if wanted is None else set(graph.closure(wanted, down=False))
    order = plan(graph, scope)
    if as_json:
        console.out_json([{"task": i, "name": graph.tasks[i].name, "command": graph.tasks[i].command} for i in order])
        return
    for task_id in order:
        task = graph.tasks[task_id]
        command = task.command if isinstance(task.command, str) else options.shell_form(task.command)
        console.out(console.clean(f"{task_id} {task.name or task.subject}: {command}"))
    console.flush()
    console.note(f"{len(order)} would run; nothing was started")
