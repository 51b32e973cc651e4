"""`taskgraph list`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from taskgraph.cli import console, options

_HEADS = ("ID", "STATE", "TASK", "WAITS FOR", "OWNER")


def command(
    ctx: typer.Context,
    status: Annotated[
        list[str] | None, typer.Option("-s", "--status", metavar="WORD", help="A status or a derived state.")
    ] = None,
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Tasks of this owner.")] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Tasks with this label.")] = None,
    ready: Annotated[bool, typer.Option("--ready", help="Tasks that could start now.")] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """List tasks: those held for a person first, then by id. Filters given together must all hold."""
    from taskgraph.core.fields import STATUSES, as_choice
    from taskgraph.core.rules import state
    from taskgraph.manager import TaskManager
    from taskgraph.report import view

    words = tuple(dict.fromkeys((*view.STATES, *STATUSES)))
    try:
        wanted = {as_choice(part, words, "state") for part in options.refs(status) if isinstance(part, str)}
    except ValueError as error:
        raise options.UsageError(f"--status: {error}") from None
    manager = TaskManager(ctx.obj.where)
    graph = manager.snapshot()
    now = manager.clock()
    vital = {task.id: manager.vital(task) for task in graph.tasks.values()}
    states = {i: state(graph, task, now, vital[i][1]) for i, task in graph.tasks.items()}
    tasks = [
        task
        for task in graph.tasks.values()
        if (not wanted or states[task.id] in wanted or task.status in wanted)
        and (owner is None or task.owner == owner)
        and all(word in task.labels for word in label or ())
        and (not ready or states[task.id] == "ready")
    ]
    tasks.sort(key=lambda task: (task.status != "held", task.id))
    if as_json:
        console.out_json([view.as_json(graph, task, now, vital[task.id]) for task in tasks])
    elif quiet:
        for task in tasks:
            console.out(str(task.id))
    else:
        _table([view.row(graph, task, now, vital[task.id][1]) for task in tasks])
    console.flush()
    faulty = console.warn_faults(graph.faults.values(), manager.view_settings[1])
    if faulty:
        raise typer.Exit(options.EXIT_STORE)


def _table(rows: list[tuple[str, ...]]) -> None:
    cleaned = [tuple(console.clean(cell) for cell in row) for row in rows]
    if not cleaned:
        console.note("no tasks")
    elif console.is_terminal():
        _draw(cleaned)
    else:
        widths = [max(len(row[i]) for row in [_HEADS, *cleaned]) for i in range(len(_HEADS))]
        for row in [_HEADS, *cleaned]:
            console.out("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _draw(rows: list[tuple[Any, ...]]) -> None:
    # Imported here: only a terminal needs it.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from taskgraph.report.view import COLOURS

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(_HEADS[0], justify="right", no_wrap=True)
    table.add_column(_HEADS[1], no_wrap=True)
    for head in _HEADS[2:]:
        # Rich takes the room that lacks from columns that may wrap; that the cells do not makes them cut instead.
        table.add_column(Text(head, no_wrap=True, overflow="ellipsis"))
    for row in rows:
        styles = ["", COLOURS.get(row[1], ""), "", "", ""]
        cells = zip(row, styles, strict=True)
        table.add_row(*(Text(cell, style=style, no_wrap=True, overflow="ellipsis") for cell, style in cells))
    Console(highlight=False, no_color=not console.colours(), width=console.width()).print(table)
