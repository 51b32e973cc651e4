"""`taskgraph update`."""

from __future__ import annotations

from typing import Annotated

import typer

from taskgraph.cli import console, options
from taskgraph.cli.show import changed, stale_note
from taskgraph.core.edit import Edges

_UNSET = {
    "timeout", "stallTimeout", "maxRetries", "retryDelay", "backoff", "maxRetryDelay", "retryExitCodes", "onFailure",
    "triggerRule", "priority", "command", "cwd", "env", "name", "worker", "labels", "notes", "metadata",
}  # fmt: skip


def command(
    ctx: typer.Context,
    task: options.OneTask,
    status: Annotated[str | None, typer.Option(metavar="STATUS", help="By the verb that leads there.")] = None,
    subject: Annotated[str | None, typer.Option(metavar="TEXT")] = None,
    description: Annotated[str | None, typer.Option("-d", "--description", metavar="TEXT")] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="With --status: who says so.")] = None,
    add_blocked_by: Annotated[list[str] | None, typer.Option(metavar="TASK,…")] = None,
    remove_blocked_by: Annotated[list[str] | None, typer.Option(metavar="TASK,…")] = None,
    add_blocks: Annotated[list[str] | None, typer.Option(metavar="TASK,…")] = None,
    remove_blocks: Annotated[list[str] | None, typer.Option(metavar="TASK,…")] = None,
    command: options.Command = None,
    worker: options.Worker = None,
    label: options.Labels = None,
    note: options.Notes = None,
    set_: options.SetKeys = None,
    unset: Annotated[list[str] | None, typer.Option(metavar="FIELD", help="Take a field out.")] = None,
    priority: options.Priority = None,
    trigger_rule: options.TriggerRule = None,
    cwd: options.Cwd = None,
    env: options.Env = None,
    timeout: options.Timeout = None,
    stall_timeout: options.StallTimeout = None,
    max_retries: options.MaxRetries = None,
    retry_delay: options.RetryDelay = None,
    backoff: options.Backoff = None,
    max_retry_delay: options.MaxRetryDelay = None,
    retry_exit_codes: options.RetryExitCodes = None,
    on_failure: options.OnFailure = None,
    attempt: options.AttemptNumber = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Change a task. With --status it is the same as complete, fail, skip, cancel, hold, reopen, release or a start."""
    from taskgraph.cli.settling import kept, see_off
    from taskgraph.core.fields import as_status
    from taskgraph.core.status import CANCELLED, COMPLETED, FAILED, HELD, SKIPPED
    from taskgraph.manager import TaskManager

    edges = Edges(
        options.refs(add_blocked_by), options.refs(remove_blocked_by),
        options.refs(add_blocks), options.refs(remove_blocks),
    )  # fmt: skip
    fields = {
        "subject": subject, "description": description, "name": name,
        "command": options.command_of(command, ctx.obj.rest), "worker": worker, "priority": priority,
        "trigger_rule": trigger_rule, "cwd": cwd, "env": options.pairs(env, "--env") or None, "timeout": timeout,
        "stall_timeout": stall_timeout, "max_retries": max_retries, "retry_delay": retry_delay, "backoff": backoff,
        "max_retry_delay": max_retry_delay, "retry_exit_codes": options.codes(retry_exit_codes),
        "on_failure": on_failure, "owner": owner if status is None else None,
    }  # fmt: skip
    metadata = options.json_pairs(set_, "--set")
    for key in unset or ():
        if key not in _UNSET:
            raise options.UsageError(f"--unset {key!r} is no field that can be taken out ({', '.join(sorted(_UNSET))})")
    described = any(v is not None for v in fields.values()) or any(edges) or bool(label or note or metadata or unset)
    if status is None and not described:
        raise options.UsageError("nothing to change was given (see 'taskgraph update --help')")
    manager = TaskManager(ctx.obj.where)
    shown = None
    stale: list[int] = []
    if status is not None:
        try:
            word = as_status(status)
        except ValueError as error:
            raise options.UsageError(f"--status: {error}") from None
    if described:
        shown = manager.update(
            task, edges=edges, add_notes=note or (), add_labels=label or (), metadata=metadata, unset=unset or (),
            **fields,
        )  # fmt: skip
    if status is not None:
        found = manager.get(task)
        who = options.caller(manager.root, found.id, owner or options.environment_owner(), attempt, force)
        if word in (COMPLETED, FAILED) and kept(manager, found, who, {"outcome": word}):
            shown = shown or found
        else:
            shown, stale = manager.set_status(found.id, word, who)
            if word in (CANCELLED, SKIPPED, HELD) or force:
                see_off(manager, [shown])
    assert shown is not None
    changed(manager, [shown], "updated", as_json=as_json, quiet=quiet, one=True)
    stale_note(stale)
    console.flush()
