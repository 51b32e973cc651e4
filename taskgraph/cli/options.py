"""Options that several verbs share, and how what is typed becomes values."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskgraph.cli.place import inside
from taskgraph.core.edit import Ref
from taskgraph.core.fence import Caller
from taskgraph.core.fields import as_seconds
from taskgraph.core.graph import Graph
from taskgraph.errors import EXIT_FAILED, EXIT_STORE, NotFoundError, RefusedError, UsageError

if TYPE_CHECKING:
    pass

__all__ = ["EXIT_FAILED", "EXIT_STORE", "Graph", "NotFoundError", "RefusedError", "UsageError"]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print ids alone.")]
Force = Annotated[bool, typer.Option("--force", help="Override what would be refused; it is recorded.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the record.")]
Owner = Annotated[str, typer.Option("--owner", metavar="NAME", help="Who does it.", envvar="TASKGRAPH_OWNER")]
AttemptNumber = Annotated[int | None, typer.Option("--attempt", metavar="N", help="The attempt this is about.")]
Tasks = Annotated[list[str], typer.Argument(metavar="TASK...", help="Tasks, by id or name.")]
OneTask = Annotated[str, typer.Argument(metavar="TASK", help="A task, by id or name.")]
MaybeTask = Annotated[
    str | None, typer.Argument(metavar="[TASK]", help="A task, by id or name; inside a task, that one.")
]

Timeout = Annotated[float | None, typer.Option(metavar="S", help="Seconds an attempt may take; 0: no limit.")]
StallTimeout = Annotated[float | None, typer.Option(metavar="S", help="Seconds it may be silent; 0: no limit.")]
MaxRetries = Annotated[int | None, typer.Option(metavar="N", help="Further attempts after the first.")]
RetryDelay = Annotated[float | None, typer.Option(metavar="S", help="Seconds before the first retry.")]
Backoff = Annotated[float | None, typer.Option(metavar="X", help="What each further delay is multiplied by.")]
MaxRetryDelay = Annotated[float | None, typer.Option(metavar="S", help="The longest delay; 0: no limit.")]
RetryExitCodes = Annotated[str | None, typer.Option(metavar="N,N", help="Only these exit codes deserve a retry.")]
OnFailure = Annotated[str | None, typer.Option(metavar="WORD", help="At the end: fail, skip, hold or stop.")]
TriggerRule = Annotated[str | None, typer.Option(metavar="RULE", help="When its upstreams let it start.")]
Priority = Annotated[int | None, typer.Option(metavar="N", help="Higher starts first.")]
Command = Annotated[str | None, typer.Option("--command", metavar="TEXT", help="Run by /bin/sh -c.")]
Cwd = Annotated[str | None, typer.Option(metavar="DIR", help="The folder to run in.")]
Env = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="An environment variable.")]
Worker = Annotated[str | None, typer.Option(metavar="NAME", help="The worker that does it.")]
Labels = Annotated[list[str] | None, typer.Option("--label", metavar="WORD", help="A label.")]
Notes = Annotated[list[str] | None, typer.Option("--note", metavar="TEXT", help="A note to append.")]
SetKeys = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=JSON", help="A key of metadata.")]


def refs(words: list[str] | None) -> tuple[Ref, ...]:
    """Tasks from words, each of which may name several with commas between."""
    return tuple(part.strip() for word in words or () for part in word.split(",") if part.strip())


def codes(text: str | None) -> list[int] | None:
    """Exit codes from a text such as ``1,75``.

    Raises:
        UsageError: it is no such text.
    """
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise UsageError(f"--retry-exit-codes {text!r} is no list of numbers such as 1,75") from None


def pairs(words: list[str] | None, flag: str) -> dict[str, str]:
    """Keys and texts from words such as ``KEY=VALUE``.

    Raises:
        UsageError: a word has no ``=``.
    """
    found = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{flag} {word!r} is not of the form KEY=VALUE")
        found[key] = value
    return found


def json_pairs(words: list[str] | None, flag: str) -> dict[str, Any]:
    """The same with JSON values; what is no JSON is taken as text."""
    return {key: _json_or_text(value) for key, value in pairs(words, flag).items()}


def _json_or_text(text: str) -> Any:
    try:
        return _parse(text)
    except ValueError:
        return text


def _parse(text: str) -> Any:
    value = json.loads(text)
    # NaN, and a number too large for a float, would be no JSON when written.
    json.dumps(value, allow_nan=False)
    return value


def seconds(value: float, flag: str) -> float:
    """A number of seconds from 0.

    Raises:
        UsageError: it is none.
    """
    try:
        return as_seconds(value)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None


def json_value(text: str, flag: str) -> Any:
    """A JSON value.

    Raises:
        UsageError: it is none.
    """
    try:
        return _parse(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{flag} is no valid JSON: {error}") from None


def default_task(ref: str | None, root: str) -> str:
    """The task that was named, else the one inside which the command runs.

    Raises:
        UsageError: there is neither.
    """
    if ref is not None:
        return ref
    here = inside(root)
    if here is None:
        raise UsageError("name a task: only inside a running task is there a default")
    return str(here[0])


def caller(root: str, task_id: int, owner: str, attempt: int | None, force: bool) -> Caller:
    """Who reports on a task: the number in the environment counts only for its own task and store."""
    here = inside(root)
    if attempt is None and here is not None and here[0] == task_id:
        attempt = here[1]
    return Caller(owner, attempt, force)


def command_of(text: str | None, rest: list[str] | None) -> str | list[str] | None:
    """The command that was given: a text for the shell, or the arguments behind ``--``.

    Raises:
        UsageError: both were given, or an empty one.
    """
    if text is not None and rest is not None:
        raise UsageError("give either --command TEXT or arguments behind '--', not both")
    if rest is not None and not rest:
        raise UsageError("there is nothing behind '--'")
    return text if rest is None else rest


def shell_form(argv: list[str]) -> str:
    """Arguments as they can be pasted into a shell."""
    import shlex

    return shlex.join(argv)


def environment_owner() -> str:
    """The name that ``TASKGRAPH_OWNER`` gives."""
    return os.environ.get("TASKGRAPH_OWNER", "")
