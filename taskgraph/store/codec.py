"""Task files as bytes: read tolerantly and exactly, written so that people like them.

Knows JSON and encodings; knows nothing of paths, locks or what the fields mean.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

from taskgraph.lines import to_bytes

WIDTH = 100
"""Lists and objects that fit this many characters stay on one line."""

DEEPEST = 100
"""Levels of lists and objects that a task file may have: more cannot be written safely from everywhere."""

_compact: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_NESTS = frozenset({list, dict})
_BOMS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


class Unreadable(ValueError):
    """Bytes that are no task: why, and in which line (from 1) where one is known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


def encode(data: dict[str, Any]) -> bytes:
    """A task file: two-space indent, short lists on one line, UTF-8 as typed, a newline at the end.

    Raises:
        ValueError: a number that JSON does not have, or more levels than a reader takes.
    """
    try:
        lines = [
            f"  {encode_basestring(key)}: {encode_basestring(value) if type(value) is str else _value(value, 2)}"
            for key, value in data.items()
        ]
    except RecursionError:
        raise ValueError("a value is nested too deeply") from None
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if text.count("[") + text.count("{") > DEEPEST and _deeper_than(DEEPEST, data):
        raise ValueError("a value is nested too deeply")
    return to_bytes(text)


def _value(value: Any, indent: int) -> str:
    if type(value) is str:
        return encode_basestring(value)
    if type(value) is int:
        return str(value)
    if isinstance(value, list):
        return _list(value, indent)
    text = _compact(value)
    if not isinstance(value, dict) or len(text) + indent <= WIDTH:
        return text
    inner = " " * (indent + 2)
    pairs = [f"{inner}{encode_basestring(k)}: {_value(v, indent + 2)}" for k, v in value.items()]
    return "{\n" + ",\n".join(pairs) + "\n" + " " * indent + "}"


def _list(values: list[Any], indent: int) -> str:
    # An object in a list keeps to one line, so that a history is one line an entry.
    entries = [type(v) is dict and len(v) < 24 for v in values]
    rows = [_compact(v) for v in values] if all(entries) else []
    text = f"[{', '.join(rows)}]" if all(entries) else _compact(values)
    if len(text) + indent <= WIDTH:
        return text
    rows = rows or [_compact(v) if e else _value(v, indent + 2) for v, e in zip(values, entries, strict=True)]
    inner = " " * (indent + 2)
    return "[\n" + ",\n".join([inner + row for row in rows]) + "\n" + " " * indent + "]"


def decode(raw: bytes) -> dict[str, Any]:
    """The object in the bytes of a file: a BOM and CRLF are fine, a doubled key is not.

    Raises:
        Unreadable: the bytes are no JSON object in UTF-8.
    """
    for bom, encoding in _BOMS:
        if raw.startswith(bom):
            raise Unreadable(f"the encoding is {encoding}; save the file as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable("the encoding is not UTF-8; save the file as UTF-8", line) from None
    if not text or text.isspace():
        raise Unreadable("the file is empty")
    try:
        data = _load(text)
    except _Doubled as doubled:
        raise Unreadable(f"the key {doubled.key!r} is given twice", _second_line(text, doubled.key)) from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"no valid JSON: {error.msg}, column {error.colno}", error.lineno) from None
    except RecursionError:
        raise Unreadable("the JSON is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"no valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise Unreadable("the file holds no JSON object", 1)
    if text.count("[") + text.count("{") > DEEPEST and _deeper_than(DEEPEST, data):
        raise Unreadable("the JSON is nested too deeply")
    return data


def decode_any(raw: bytes) -> Any:
    """Any JSON value in UTF-8, as a command may leave it.

    Raises:
        ValueError: the bytes are no JSON.
    """
    try:
        value = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant, parse_float=_float)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # It will stand within a task file, so it gets a few levels less.
    if _deeper_than(DEEPEST - 10, value):
        raise ValueError("it is nested too deeply")
    return value


def _deeper_than(levels: int, value: Any) -> bool:
    """Whether lists and objects lie in each other more often; a value that is flat costs next to nothing."""
    row = [value]
    for _ in range(levels + 1):
        row = [v for outer in row if type(outer) in _NESTS for v in (outer.values() if type(outer) is dict else outer)]
        if not row:
            return False
    return True


def line_of(raw: bytes, key: str) -> int | None:
    """The line, from 1, in which the key of an object first stands."""
    position = raw.find(f'"{key}"'.encode())
    return raw.count(b"\n", 0, position) + 1 if position >= 0 else None


class _Doubled(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise _Doubled(key)
            seen.add(key)
    return data


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is no number that can be kept")
    return value


_load: Callable[[str], Any] = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_float
).decode


def _second_line(text: str, key: str) -> int | None:
    quoted = f'"{key}"'
    second = text.find(quoted, text.find(quoted) + 1)
    return text.count("\n", 0, second) + 1 if second >= 0 else None
