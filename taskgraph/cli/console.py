"""The only place that prints: results to stdout, messages to stderr, and nothing that could pass for a colour.

Knows terminals, pipes and JSON; knows nothing of tasks.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TextIO

from taskgraph.errors import StoreError, TaskgraphError

_ESCAPES = {ord("\n"): "\\n", ord("\t"): "\\t", ord("\r"): "\\r"}


def clean(text: str) -> str:
    """Text as it can stand in one line of a terminal: control characters and line ends are shown, not obeyed."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _ESCAPES.get(ord(c)) or _escape(c) for c in text)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clean_lines(text: str) -> str:
    """The same for text of several lines, whose line ends stay."""
    return "\n".join(clean(line) for line in text.replace("\r\n", "\n").split("\n"))


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def out(text: str = "") -> None:
    """A line of a result; control characters must have been taken care of."""
    _write(sys.stdout, text + "\n")


def out_json(value: Any) -> None:
    """One JSON document as the result; half a surrogate pair is written as an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    try:
        # Not left to the stream: in some locales it would hand on a broken byte as it came.
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value)
    sys.stdout.write(text + "\n")


def out_bytes(block: bytes) -> None:
    """Bytes as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(block)
    sys.stdout.buffer.flush()


def note(text: str) -> None:
    """A message for a person; one that nobody can read any more is dropped."""
    try:
        _write(sys.stderr, text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def fault(error: TaskgraphError, *, as_json: bool) -> None:
    """Why a command failed: one sentence on stderr, and with ``as_json`` also a document on stdout."""
    note(f"taskgraph: {clean(error.message)}")
    try:
        if as_json:
            out_json({"error": error.as_json()})
        flush()
    except OSError:
        abandon()


def warn_faults(faults: Iterable[StoreError], config: StoreError | None) -> bool:
    """Name the files that cannot be read; whether there are any."""
    found = [*faults, *([config] if config is not None else [])]
    for error in found:
        note(f"taskgraph: {clean(error.message)}")
    return bool(found)


def flush() -> None:
    """Hand over what was printed so far."""
    sys.stdout.flush()


def is_terminal() -> bool:
    """Whether results go to a terminal."""
    return sys.stdout.isatty()


def messages_to_terminal() -> bool:
    """Whether messages go to a terminal that can be drawn on."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def colours() -> bool:
    """Whether results may be coloured."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def messages_coloured() -> bool:
    """Whether messages may be coloured."""
    return messages_to_terminal() and not os.environ.get("NO_COLOR")


class _Lasting:
    """A stream that may lose its reader: what cannot be written any more is dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with suppress(OSError):
            _write(self._stream, text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def lasting(stream: TextIO) -> Any:
    """The stream for somebody who goes on drawing when nobody looks any more."""
    return _Lasting(stream)


def append(path: str, text: str) -> None:
    """Add text to a file that somebody else shows; a fault is only told."""
    try:
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        note(f"taskgraph: {path} cannot be written: {error.strerror}")


def width() -> int:
    """The width of the terminal in columns; without a terminal nothing is cut."""
    if not is_terminal():
        return 1_000_000
    try:
        return max(20, int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns))
    except (OSError, ValueError):
        return 80


def keep_streams() -> None:
    """Let a stream that was closed before the start lead nowhere, so that no file of the store gets its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
            setattr(sys, name, open(number, "r+" if number else "r", encoding="utf-8"))  # noqa: SIM115


def reader_gone() -> bool:
    """Whether nobody can read what is still to come: a pipe that was closed tells so only to those who ask or write."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))
    except (OSError, ValueError):
        return False


def abandon() -> None:
    """The reader has gone: let the end of the program be quiet."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):
        pass
