"""The lines that a run prints: one for each event, and a summary at the end."""

from __future__ import annotations

import os

from taskgraph.core.explain import why
from taskgraph.core.fields import parse_time
from taskgraph.core.graph import Event, Graph
from taskgraph.core.task import Task
from taskgraph.runner.outcome import Outcome
from taskgraph.store import layout

_TAIL_LINES = 5
_TAIL_BYTES = 8192
_MOST = 20


def title(graph: Graph, task_id: int) -> str:
    """A task as a line names it: its id, and its name or its subject."""
    task = graph.tasks.get(task_id)
    what = (task.name or task.subject) if task is not None else ""
    return f"{task_id} {what}".rstrip()


def line(graph: Graph, event: Event) -> str | None:
    """One event as a line, or None for one that says nothing new."""
    if "task" not in event:
        return f"warning: {event['text']}" if event["event"] == "warning" else None
    name = title(graph, event["task"])
    match event["event"]:
        case "started":
            return f"start     {name}{_try(graph, event)}"
        case "completed":
            return f"done      {name}{_how_long(graph, event)}"
        case "failed":
            return f"FAILED    {name}: {event.get('reason', '')}"
        case "retrying":
            return f"retry     {name}: {event.get('why', '')}{_delay(graph, event)}"
        case "released":
            return f"released  {name}: {event.get('why', '')}"
        case "skipped":
            return f"skipped   {name}{_because(event)}"
        case "cancelled":
            return f"cancelled {name}{_because(event)}"
        case "held":
            return f"HELD      {name}: {event.get('reason', '')}"
        case "stalled":
            return f"stalled   {name}: silent for {event.get('limit', 0):g} s"
        case "timeout":
            return f"timeout   {name}: over {event.get('limit', 0):g} s"
        case "revived":
            return f"revived   {name}"
    return None


def _try(graph: Graph, event: Event) -> str:
    task = graph.tasks.get(event["task"])
    tries = len(task.tries) if task is not None else 1
    return f" (try {tries})" if tries > 1 else ""


def _how_long(graph: Graph, event: Event) -> str:
    task = graph.tasks.get(event["task"])
    last = task.attempts[-1] if task is not None and task.attempts else None
    if last is None or "finishedAt" not in last:
        return ""
    seconds = max(0.0, parse_time(last["finishedAt"]) - parse_time(last["startedAt"]))
    return f" ({span(seconds)})"


def _delay(graph: Graph, event: Event) -> str:
    task = graph.tasks.get(event["task"])
    delay = task.attempts[-1].get("retryIn", 0) if task is not None and task.attempts else 0
    return f"; again in {span(delay)}" if delay else "; again now"


def _because(event: Event) -> str:
    if event.get("cause"):
        return f", since {', '.join(map(str, event['cause']))} ended"
    return f": {event['reason']}" if event.get("reason") else ""


def span(seconds: float) -> str:
    """A span of time for people."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def tail(path: str, lines: int = _TAIL_LINES) -> list[str]:
    """The last lines of a log, each as it would stand on a screen in the end."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [settle(each) for each in text.rstrip("\n").split("\n") if each.strip()][-lines:]


def settle(text: str) -> str:
    """A line that was redrawn with carriage returns, as it stood in the end."""
    parts = [part for part in text.rstrip("\r").split("\r") if part]
    return parts[-1] if parts else ""


def summary(graph: Graph, outcome: Outcome, root: str, now: float) -> list[str]:
    """What a run came to, as lines: counts, each failure with the end of its log, and what waits for whom."""
    counts = {word: count for word, count in sorted(outcome.counts.items()) if word != "recovered"}
    words = [f"{count} {word}" for word, count in counts.items()]
    if outcome.counts.get("recovered"):
        words[[*counts].index("completed")] += f" ({outcome.counts['recovered']} recovered)"
    lines = [f"{', '.join(words) or 'nothing to do'}; {_attempts(outcome.attempts)} in {span(outcome.seconds)}"]
    if outcome.reason:
        lines.append(f"ended early: {outcome.reason}")
    for text in outcome.faults.values():
        lines.append(f"cannot be read: {text}")
    lines += _waiting(graph, outcome, now)
    for task_id in outcome.failed[:_MOST]:
        lines += _failure(graph.tasks[task_id], root)
    if len(outcome.failed) > _MOST:
        lines.append(f"and {len(outcome.failed) - _MOST} more failed; 'taskgraph list --status failed' lists them")
    if outcome.failed:
        first = graph.tasks[outcome.failed[0]]
        log = log_of(root, first)
        where = f"; its log: {log}" if log else ""
        lines.append(f"first failure: {title(graph, first.id)}: {first.reason}{where}")
        lines.append("'taskgraph reopen --failed' has them done again")
    return lines


def _attempts(count: int) -> str:
    return "1 attempt" if count == 1 else f"{count} attempts"


def _waiting(graph: Graph, outcome: Outcome, now: float) -> list[str]:
    if not outcome.waiting:
        return []
    rows = [f"{i} {why(graph, graph.tasks[i], i, now)}" for i in outcome.waiting[:_MOST]]
    more = len(outcome.waiting) - len(rows)
    head = "not done:" if outcome.reason or outcome.exit_code > 128 else "nothing more can start:"
    return [head, *(f"  {row}" for row in rows), *([f"  and {more} more wait"] if more else [])]


def _failure(task: Task, root: str) -> list[str]:
    lines = [f"FAILED {task.title}: {task.reason}"]
    if log := log_of(root, task):
        lines += [f"  | {text}" for text in tail(log)]
        lines.append(f"  log: {log}")
    return lines


def log_of(root: str, task: Task) -> str:
    """The log of the last attempt, seen from where the person stands if that is shorter.

    Empty where there is none, as after an attempt of a person or an agent.
    """
    path = layout.log_path(root, task.id, task.attempts[-1]["number"]) if task.attempts else ""
    if not os.path.exists(path):
        return ""
    near = os.path.relpath(path)
    return near if len(near) < len(path) else path


def markdown(graph: Graph, outcome: Outcome, root: str, now: float) -> str:
    """The summary for a page such as GitHub shows for a workflow."""
    fence = "````"
    text = "\n".join(summary(graph, outcome, root, now)).replace(fence, "```")
    return f"### taskgraph run\n\n{fence}text\n{text}\n{fence}\n"
