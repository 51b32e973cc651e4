"""`taskgraph create`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from taskgraph.cli import console, options
from taskgraph.cli.show import changed


def command(
    ctx: typer.Context,
    subject: Annotated[str, typer.Argument(help="What is to be done, in a line.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="A unique name, usable for the id.")] = None,
    exist_ok: Annotated[bool, typer.Option("--exist-ok", help="If the name is taken, answer with that task.")] = False,
    description: Annotated[str | None, typer.Option("-d", "--description", metavar="TEXT")] = None,
    blocked_by: Annotated[list[str] | None, typer.Option("-b", "--blocked-by", metavar="TASK,…")] = None,
    blocks: Annotated[list[str] | None, typer.Option("--blocks", metavar="TASK,…")] = None,
    command: options.Command = None,
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Reserve it for somebody.")] = None,
    worker: options.Worker = None,
    label: options.Labels = None,
    note: options.Notes = None,
    set_: options.SetKeys = None,
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
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Make a task. A command for the shell is given with --command; arguments behind -- are run just as they are.

    Where there is no store, one is made in this folder.
    """
    from taskgraph.manager import TaskManager
    from taskgraph.store import files, layout

    try:
        root = layout.find(ctx.obj.where, os.environ, os.getcwd())
    except options.NotFoundError:
        root = layout.expected(ctx.obj.where or os.environ.get("TASKGRAPH_DIR"), os.getcwd())
        files.make(root)
    manager = TaskManager(root)
    task = manager.create(
        subject, blocked_by=options.refs(blocked_by), blocks=options.refs(blocks), exist_ok=exist_ok, name=name,
        description=description, command=options.command_of(command, ctx.obj.rest), owner=owner, worker=worker,
        labels=label, notes=note, metadata=options.json_pairs(set_, "--set") or None, priority=priority,
        trigger_rule=trigger_rule, cwd=cwd, env=options.pairs(env, "--env") or None, timeout=timeout,
        stall_timeout=stall_timeout, max_retries=max_retries, retry_delay=retry_delay, backoff=backoff,
        max_retry_delay=max_retry_delay, retry_exit_codes=options.codes(retry_exit_codes), on_failure=on_failure,
    )  # fmt: skip
    changed(manager, [task], "created", as_json=as_json, quiet=quiet, one=True)
    if not (quiet or as_json):
        console.flush()
