"""JSON values as lines: the history, promises, and what a runner and its keeper say to each other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

_encode: Final[Callable[[Any], str]] = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
_decode: Final[Callable[[str], Any]] = json.JSONDecoder().decode
_LONE: Final = re.compile("[\ud800-\udfff]")


def to_bytes(text: str) -> bytes:
    """UTF-8; half a surrogate pair, which UTF-8 cannot hold, is written as a JSON escape."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _LONE.sub(lambda half: f"\\u{ord(half.group()):04x}", text).encode()


def dump(value: Any) -> bytes:
    """One JSON value as one line without blanks, newline included.

    Raises:
        ValueError: it holds a number that JSON does not have.
    """
    return to_bytes(_encode(value)) + b"\n"


def load(line: bytes) -> Any:
    """The JSON value in a line.

    Raises:
        ValueError: there is none.
    """
    try:
        return _decode(line.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None
