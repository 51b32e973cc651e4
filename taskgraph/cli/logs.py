"""`taskgraph logs`."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from taskgraph.cli import console, options
from taskgraph.errors import NotFoundError

_STEP = 0.05
_BLOCK = 1 << 16


def command(
    ctx: typer.Context,
    task: options.OneTask,
    attempt: options.AttemptNumber = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the attempt ends.")] = False,
    tail: Annotated[int | None, typer.Option(metavar="N", help="Only the last N lines.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Byte for byte.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show the output of a task: of its last attempt, or of the one that --attempt names.

    A line that was redrawn with carriage returns is shown as it stood in the end, control characters are escaped; --raw
    shows the bytes of the file.
    """
    from taskgraph.manager import TaskManager
    from taskgraph.store import layout

    manager = TaskManager(ctx.obj.where)
    found = manager.get(task)
    number = attempt if attempt is not None else max((a["number"] for a in found.attempts), default=0)
    path = layout.log_path(manager.root, found.id, number)
    known = any(a["number"] == number for a in found.attempts)
    if not known and not os.path.exists(path):
        numbers = ", ".join(str(a["number"]) for a in found.attempts) or "none"
        what = "has no attempts yet" if not found.attempts else f"has no attempt {number} (attempts: {numbers})"
        raise NotFoundError(f"{found.title} {what}", task=found.id)
    if tail is not None and tail < 0:
        raise options.UsageError(f"--tail {tail} is no number of lines")
    if as_json:
        text = _text(path, tail)
        console.out_json({"task": found.id, "attempt": number, "path": path, "text": text})
        return
    offset = _start(path, tail)
    pending = b""
    while True:
        ended = not follow or not _under_way(manager.get(found.id).current, number)
        offset, pending = _show(path, offset, pending, raw=raw, last=ended)
        if ended or console.reader_gone():
            return
        time.sleep(_STEP)


def _under_way(current: object, number: int) -> bool:
    return isinstance(current, dict) and current.get("number") == number


def _start(path: str, tail: int | None) -> int:
    """The byte at which the last lines begin."""
    if tail is None:
        return 0
    try:
        with open(path, "rb") as file:
            position = file.seek(0, os.SEEK_END)
            if tail == 0:
                return position
            wanted, first = tail, True
            while position > 0:
                step = min(_BLOCK, position)
                file.seek(position - step)
                block = file.read(step)
                end = len(block) - 1 if first and block.endswith(b"\n") else len(block)
                first = False
                while (found := block.rfind(b"\n", 0, end)) >= 0:
                    wanted -= 1
                    if wanted <= 0:
                        return position - step + found + 1
                    end = found
                position -= step
            return 0
    except FileNotFoundError:
        return 0


def _text(path: str, tail: int | None) -> str:
    from taskgraph.report.summary import settle

    try:
        with open(path, "rb") as file:
            file.seek(_start(path, tail))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "\n".join(settle(line) for line in text.split("\n"))


def _show(path: str, offset: int, pending: bytes, *, raw: bool, last: bool) -> tuple[int, bytes]:
    """Show what has come since; returns the new offset, and the line that is not whole yet."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            while block := file.read(_BLOCK):
                offset += len(block)
                pending = _emit(pending + block, raw)
    except FileNotFoundError:
        pass
    if last and pending:
        console.out_bytes(_shown(pending) + b"\n")
        pending = b""
    return offset, pending


def _emit(block: bytes, raw: bool) -> bytes:
    if raw:
        console.out_bytes(block)
        return b""
    whole, newline, rest = block.rpartition(b"\n")
    if newline:
        console.out_bytes(b"\n".join(map(_shown, whole.split(b"\n"))) + b"\n")
    if len(rest) > 4 * _BLOCK and b"\r" not in rest:
        # A line without an end: hand it on in pieces, between two characters, instead of gathering it.
        ends = range(len(rest) - 1, len(rest) - 5, -1)
        cut = next((i for i in ends if rest[i] & 0xC0 != 0x80), len(rest))
        console.out_bytes(_shown(rest[:cut]))
        return rest[cut:]
    return rest[rest.rfind(b"\r", 0, -1) + 1 :] if b"\r" in rest[:-1] else rest


def _shown(line: bytes) -> bytes:
    from taskgraph.report.summary import settle

    text = settle(line.decode("utf-8", "backslashreplace"))
    return "\t".join(map(console.clean, text.split("\t"))).encode()
