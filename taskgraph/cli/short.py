"""The plainest forms of the commands that are called most, answered before typer is loaded.

`get TASK [--json]` and `run [-j N] [-q]` need no parser, and typer's import takes longer than all they do. Everything else,
and every form that is not plain, is left to typer; both ways lead to the same functions.
"""

from __future__ import annotations


def answer(arguments: list[str]) -> int | None:
    """The exit code of a command in a plain form, or None where typer must read the arguments."""
    match arguments:
        case ["get", task] | ["get", task, "--json"] if not task.startswith("-"):
            from taskgraph.cli.card import show

            show(None, task, as_json=len(arguments) == 3)
            return 0
        case ["run", *rest]:
            slots, quiet = 0, False
            match rest:
                case [] | ["-q"]:
                    quiet = bool(rest)
                case ["-j", number] | ["-j", number, "-q"] if number.isascii() and number.isdigit():
                    slots, quiet = int(number), len(rest) == 3
                case _:
                    return None
            from taskgraph.cli.running import carry_out, open_store

            return carry_out(open_store(None), quiet=quiet, as_json=False, slots=slots)
    return None
