"""The entry: faults become one sentence and an exit code. Loads typer only where the arguments need it."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from taskgraph.cli import console, short
from taskgraph.errors import EXIT_USAGE, NotFoundError, StoreError, TaskgraphError, UsageError


def run(arguments: list[str]) -> int:
    """Run one command; returns its exit code."""
    as_json = "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)
    try:
        _stand_somewhere()
        code = short.answer(arguments)
        if code is None:
            # Imported here: it takes most of the time that a short command has.
            from taskgraph.cli.app import dispatch

            code = dispatch(arguments)
        console.flush()
        return code
    except TaskgraphError as error:
        console.fault(error, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        console.abandon()
        return 0
    except OSError as error:
        # Where the system names no file, it was the answer that could not be handed over.
        fault = StoreError(str(error.filename or "standard output"), error.strerror or str(error))
        console.fault(fault, as_json=as_json)
        return fault.exit_code
    except RecursionError:
        console.fault(UsageError("something is nested too deeply to be read"), as_json=as_json)
        return EXIT_USAGE


def _stand_somewhere() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise NotFoundError("the folder you are in has been removed; go to another one") from None


def main() -> NoReturn:
    """The console command."""
    console.keep_streams()
    code = run(sys.argv[1:])
    # Nothing is left to do: skip taking the interpreter down piece by piece.
    try:
        console.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
    finally:
        os._exit(code)
