"""`taskgraph events`."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from taskgraph.cli import console, options
from taskgraph.core.edit import id_of
from taskgraph.errors import StoreError

_STEP = 0.05
_HEAD = ("id", "at", "event", "task", "attempt", "by")


def command(
    ctx: typer.Context,
    task: Annotated[str | None, typer.Argument(metavar="[TASK]", help="Only events of this task.")] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as events come.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show the history, oldest first. With --json one list; with -f and --json one object a line."""
    from taskgraph.manager import TaskManager

    manager = TaskManager(ctx.obj.where)
    history = manager.store.history
    wanted = None if task is None else id_of(task) or manager.get(task).id
    if wanted is not None and not follow and not _known(manager, wanted):
        raise options.NotFoundError(f"there is no task {wanted}, and the history knows of none", task=wanted)
    mark = history.mark()
    events, offset = history.read()
    chosen = _of(events, wanted)
    if as_json and not follow:
        console.out_json(chosen)
        return
    while True:
        for event in chosen:
            console.out(json.dumps(event, ensure_ascii=True) if as_json else _line(event))
        console.flush()
        if not follow:
            return
        while (now := history.mark()) == mark:
            if console.reader_gone():
                return
            time.sleep(_STEP)
        # A file in the place of one that was moved away is read from its beginning.
        events, offset = history.read(offset if now.continues(mark) else 0)
        mark = now
        chosen = _of(events, wanted)


def _known(manager: Any, task_id: int) -> bool:
    faults: dict[int, StoreError] = {}
    if manager.store.read(task_id, faults) is not None or faults:
        return True
    return any(event.get("task") == task_id for event in manager.store.history.read()[0])


def _of(events: list[dict[str, Any]], task_id: int | None) -> list[dict[str, Any]]:
    return events if task_id is None else [event for event in events if event.get("task") == task_id]


def _line(event: dict[str, Any]) -> str:
    values = [f"{key}={_short(value)}" for key, value in event.items() if key not in _HEAD]
    about = f"{event.get('task', '-')}" + (f".{event['attempt']}" if "attempt" in event else "")
    at, what = event.get("at", ""), str(event.get("event", ""))
    head = f"{event['id']:>5}  {at}  {what:<10} {about:<6} {event.get('by', '')}"
    return console.clean(f"{head}  {' '.join(values)}".rstrip())


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
