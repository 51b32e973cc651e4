"""Hands that type commands: inside of this process where that is enough, else through a real program or a real terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from taskgraph.cli.main import run
from tests.conftest import PATIENCE, StoreBox, clean_environment


class Answer(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout, read as strictly as the standard asks."""

        def refuse(word: str) -> None:
            raise AssertionError(f"{word} is no JSON")

        return json.loads(self.out, parse_constant=refuse)

    @property
    def lines(self) -> list[str]:
        """The lines on stdout; only a line feed ends one."""
        return self.out.split("\n")[:-1]


class Keyboard:
    """Types commands into `taskgraph` without starting a process, in the folder of a store.

    Args:
        store: the store.
        capfd: what takes up the output.
    """

    def __init__(self, store: StoreBox, capfd: pytest.CaptureFixture[str]) -> None:
        self.store = store
        self._capfd = capfd

    def __call__(self, *arguments: str) -> Answer:
        """Type a command."""
        self._capfd.readouterr()
        code = run(list(arguments))
        told = Answer(code, *self._capfd.readouterr())
        assert "Traceback" not in told.err
        return told

    def ok(self, *arguments: str) -> Answer:
        """Type a command that must succeed."""
        told = self(*arguments)
        assert told.code == 0, told
        return told

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Type a command with ``--json``; the document it answers with."""
        told = self(*arguments, "--json")
        assert told.code == code, told
        return told.document

    def refused(self, code: int, *arguments: str) -> str:
        """Type a command that must fail with one sentence and nothing on stdout; that sentence."""
        told = self(*arguments)
        assert (told.code, told.out) == (code, ""), told
        assert told.err.startswith("taskgraph: "), told
        assert told.err.count("\n") == 1, told
        return told.err


def in_terminal(store: StoreBox, *arguments: str, columns: int = 80, doing: Callable[[], None] = lambda: None,
                **env: str) -> str:  # fmt: skip
    """Run a command in a terminal of its own and return all that it drew there.

    Args:
        store: where.
        *arguments: the command.
        columns: the width of the terminal.
        doing: called once the program has begun.
        **env: further environment variables.
    """
    environment = clean_environment(TERM="xterm-256color", **env)
    environment.pop("COLUMNS", None)  # would stand above the width of the terminal
    main, side = pty.openpty()
    try:
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        process = subprocess.Popen(
            store.command(*arguments), cwd=store.folder, env=environment, stdin=side, stdout=side, stderr=side,
        )  # fmt: skip
        os.close(side)
        doing()
        drawn = bytearray()
        with suppress(OSError):
            while block := os.read(main, 65536):
                drawn += block
        process.wait(PATIENCE)
    finally:
        os.close(main)
    return drawn.decode().replace("\r\n", "\n")
