"""The commands as typer knows them: every verb is there, and the file of the one that is used is loaded."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from typer._click.exceptions import ClickException
from typer.core import TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from taskgraph.cli import console
from taskgraph.errors import UsageError

VERBS: Final = {
    "init": "Make a store: a .tasks folder.",
    "create": "Make a task.",
    "update": "Change a task: its text, edges, limits or status.",
    "list": "List tasks.",
    "get": "Show one task.",
    "delete": "Delete tasks.",
    "run": "Run what can be run, in parallel, to the end.",
    "reopen": "Have tasks done again, with fresh retries.",
    "skip": "Waive tasks: what depends on them goes on.",
    "cancel": "Cancel tasks: what depends on them does not go on.",
    "hold": "Hold tasks until a person decides.",
    "release": "Give back claimed or held tasks.",
    "claim": "Take a task to work on.",
    "heartbeat": "Give a sign of life for a task.",
    "complete": "Complete a task.",
    "fail": "Report that a task failed.",
    "status": "Show where the whole graph stands.",
    "explain": "Say why a task is not running, down to the root cause.",
    "logs": "Show the output of a task.",
    "events": "Show the history.",
    "check": "Look for faults in the store, and mend them with --fix.",
}
"""Every verb, with the line that help shows; the verb's own file is loaded when it is used."""


class Verbs(TyperGroup):
    """Commands that are loaded when they are used."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            return None
        module = __import__(f"taskgraph.cli.{cmd_name}", fromlist=["command"])
        return get_command_from_info(
            CommandInfo(name=cmd_name, callback=module.command, help=module.command.__doc__, short_help=VERBS[cmd_name],
                        no_args_is_help=False),
            pretty_exceptions_short=True, rich_markup_mode=None,
        )  # fmt: skip

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in VERBS:
            from difflib import get_close_matches

            near = get_close_matches(args[0], VERBS, 1, 0.7)
            hint = f"did you mean '{near[0]}'?" if near else "'taskgraph --help' lists the commands"
            raise UsageError(f"there is no command '{args[0]}'; {hint}")
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=Verbs, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        from taskgraph import __version__

        console.out(f"taskgraph {__version__}")
        raise typer.Exit


@app.callback()
def top(
    ctx: typer.Context,
    where: Annotated[
        str, typer.Option("-C", "--dir", metavar="DIR", help="A .tasks folder, or the folder that holds one.")
    ] = "",
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """A task graph in a plain folder: every task is one JSON file under .tasks/."""
    ctx.obj.where = where or None


class Context:
    """What every verb is given.

    Attributes:
        where: the store that -C names, if it was given.
        rest: the arguments behind a ``--``, or None where there is none.
    """

    def __init__(self, rest: list[str] | None) -> None:
        self.where: str | None = None
        self.rest = rest


_TAKE_REST: Final = ("create", "update")


def dispatch(arguments: list[str]) -> int:
    """Run the command that the arguments name; returns its exit code.

    Raises:
        TaskgraphError: it failed, or was used wrongly.
    """
    arguments, rest = _split(arguments)
    if rest is not None and not any(verb in arguments for verb in _TAKE_REST):
        raise UsageError("only 'create' and 'update' take a command behind '--'")
    command = typer.main.get_command(app)
    try:
        # Not by its `main`, which would end the process at a closed pipe.
        with command.make_context("taskgraph", arguments or ["--help"], obj=Context(rest)) as context:
            command.invoke(context)
    except ClickException as error:
        raise UsageError(_sentence(error)) from None
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return 130
    return 0


def _split(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """The arguments before and behind the first ``--``."""
    if "--" not in arguments:
        return arguments, None
    cut = arguments.index("--")
    return arguments[:cut], arguments[cut + 1 :]


def _sentence(error: Any) -> str:
    text = error.format_message().strip().rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "taskgraph"
    return f"{text[:1].lower() + text[1:]} (see '{path} --help')"
