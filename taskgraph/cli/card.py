"""One task, shown: what `taskgraph get` prints. Needs no typer."""

from __future__ import annotations

import json
import shlex
from typing import Any

from taskgraph.cli import console
from taskgraph.core.flow import sync_edge
from taskgraph.core.retry import describe
from taskgraph.manager import TaskManager
from taskgraph.report import view


def show(where: str | None, ref: str, *, as_json: bool) -> None:
    """Show one task of a store."""
    manager = TaskManager(where)
    graph, task = manager.look(ref)
    for _, up in list(graph.upstreams(task)):
        if up is not None:
            sync_edge(up, task)
    now = manager.clock()
    vital = manager.vital(task)
    shown = view.as_json(graph, task, now, vital)
    if as_json:
        console.out_json(shown)
    else:
        _describe(shown)
    console.flush()


_HIDDEN = ("id", "subject", "description", "attempts", "state", "status")


def _describe(shown: dict[str, Any]) -> None:
    state = shown["state"] if shown["state"] == shown["status"] else f"{shown['status']} ({shown['state']})"
    console.out(f"task {shown['id']}: {console.clean(shown['subject'])}")
    console.out(f"  status: {state}")
    for key, value in shown.items():
        if key not in _HIDDEN and value not in ("", [], {}, None):
            console.out(f"  {console.clean(key)}: {_value(key, value)}")
    for attempt in shown.get("attempts", ()):
        console.out(f"  attempt {_attempt(attempt)}")
    if shown["description"]:
        console.out("\n" + console.clean_lines(shown["description"]))


def _value(key: str, value: Any) -> str:
    if key == "command" and isinstance(value, list):
        return console.clean(shlex.join(value)) if all(word.isprintable() for word in value) else _json(value)
    if isinstance(value, str):
        return console.clean(value)
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return ", ".join(map(str, value))
    return _json(value)


def _json(value: Any) -> str:
    return console.clean(json.dumps(value, ensure_ascii=False))


def _attempt(attempt: dict[str, Any]) -> str:
    times = " → ".join(str(attempt[key]) for key in ("startedAt", "finishedAt") if key in attempt)
    ending = attempt.get("outcome", "under way")
    if ending not in ("completed", "under way"):
        why = describe(attempt)  # type: ignore[arg-type]
        ending = ending if why == ending else f"{ending}: {why}"
    last = f"; last line: {attempt['lastLine']}" if attempt.get("lastLine") else ""
    return console.clean(f"{attempt['number']} (visit {attempt.get('visit', 1)}) {times} {ending}{last}")
