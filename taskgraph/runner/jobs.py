"""From a task to the command that is run for it, and from the end of a command to what it means.

Knows environment variables, inputs and results; decides nothing.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from taskgraph import lines, regular
from taskgraph.core.graph import Graph
from taskgraph.core.retry import COMPLETED, FAILED
from taskgraph.core.task import Task
from taskgraph.errors import StoreError
from taskgraph.executor.local import Job
from taskgraph.executor.records import Exit
from taskgraph.store import codec, layout

LONGEST_RESULT = 64 << 20
"""Bytes that a result may have."""

_LEFT = ("out", "report", "beat")


def marks(root: str, task_id: int, attempt: int) -> dict[str, str]:
    """The environment variables by which a process is known to belong to an attempt."""
    return {"TASKGRAPH_DIR": root, "TASKGRAPH_TASK_ID": str(task_id), "TASKGRAPH_ATTEMPT": str(attempt)}


def build(root: str, graph: Graph, task: Task, number: int) -> Job:
    """The job of an attempt; writes its inputs where its upstreams left results.

    Raises:
        StoreError: the inputs cannot be written.
    """
    task_id = task.id
    watch = {what: layout.run_path(root, task_id, number, what) for what in _LEFT}
    env = {
        **task.env,
        **marks(root, task_id, number),
        "TASKGRAPH_TASK_NAME": task.name,
        "TASKGRAPH_VISIT": str(task.visit),
        "TASKGRAPH_OUTPUT": watch["out"],
        "TASKGRAPH_HEARTBEAT": watch["beat"],
        "TASKGRAPH_INPUTS": _inputs(root, graph, task, number),
    }
    command = task.command
    # A text that was saved with CRLF would hand each program a stray carriage return.
    argv = command if isinstance(command, list) else _shell(command.replace("\r\n", "\n"))
    cwd = os.path.join(os.path.dirname(root), os.path.expanduser(task.cwd)) if task.cwd else None
    return Job(task_id, number, argv, cwd, env, layout.log_path(root, task_id, number), watch)


def _shell(text: str) -> list[str]:
    return ["/bin/sh", "-c", text] if text.strip() else []


def _inputs(root: str, graph: Graph, task: Task, number: int) -> str:
    """The file with the results of the upstreams, by name and by id."""
    results: dict[str, Any] = {}
    for up_id, up in graph.upstreams(task):
        if up is not None and up.result is not None:
            results[str(up_id)] = up.result
            if up.name:
                results[up.name] = up.result
    path = layout.run_path(root, task.id, number, "in") if results else f"{root}/run/no-inputs"
    if results or not os.access(path, os.F_OK):
        beside = f"{path}.{os.getpid()}.tmp"
        try:
            os.makedirs(f"{root}/run", exist_ok=True)
            with open(beside, "wb") as file:
                file.write(lines.dump(results))
            os.replace(beside, path)
        except OSError as error:
            raise StoreError(path, f"cannot be written: {error.strerror}") from None
    return path


def judge(root: str, end: Exit) -> tuple[dict[str, Any], Any]:
    """What the end of a command means: the facts with an ``outcome``, and the result.

    A report made from inside (``complete``, ``fail``) counts, but an exit that is not 0 wins.
    """
    facts = dict(end.facts)
    failed = facts.get("exitCode") != 0 or "signal" in facts or "error" in facts
    facts["outcome"] = FAILED if failed else COMPLETED
    if failed:
        return facts, None
    result = None
    try:
        report = _read(root, end, "report") if "report" in end.left else {}
        if not isinstance(report, dict):
            raise ValueError("the report holds no object")
        if report.get("outcome") == FAILED:
            facts.update(outcome=FAILED, error=report.get("reason") or "reported as failed")
            return facts, None
        result = report.get("result")
        if "out" in end.left:
            result = _read(root, end, "out")
    except ValueError as error:
        facts.update(outcome=FAILED, error=f"the result in $TASKGRAPH_OUTPUT is no valid JSON: {error}")
        return facts, None
    except OSError as error:
        facts.update(outcome=FAILED, error=f"the result in $TASKGRAPH_OUTPUT cannot be read: {error.strerror}")
        return facts, None
    return facts, result


def _read(root: str, end: Exit, what: str) -> Any:
    return codec.decode_any(regular.read(layout.run_path(root, end.task, end.attempt, what), LONGEST_RESULT))


def clear(root: str, end: Exit, task: Task) -> None:
    """Remove what a recorded attempt left in `run/`."""
    for what in [*end.left, "in"] if task.unblocked_by else end.left:
        with suppress(OSError):
            os.unlink(layout.run_path(root, end.task, end.attempt, what))


def report(root: str, task_id: int, attempt: int, said: dict[str, Any]) -> None:
    """Keep what a running attempt reports about itself until its exit settles it; a result that it gave before stays.

    Raises:
        StoreError: it cannot be written.
    """
    path = layout.run_path(root, task_id, attempt, "report")
    with suppress(OSError, ValueError):
        before = codec.decode_any(regular.read(path, LONGEST_RESULT))
        if isinstance(before, dict) and before.get("outcome") == said["outcome"]:
            said = {**before, **{key: value for key, value in said.items() if value is not None}}
    try:
        with open(f"{path}.tmp", "wb") as file:
            file.write(json.dumps(said).encode())
        os.replace(f"{path}.tmp", path)
    except OSError as error:
        raise StoreError(path, f"cannot be written: {error.strerror}") from None
