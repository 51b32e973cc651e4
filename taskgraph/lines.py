"""JSON values as lines: the history, promises, and what a runner and its keeper say to each other.

Whoever reads whole stores has msgspec loaded, and then it is used: the same bytes and values, ten times as fast. Everybody
else is spared its import.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

_dense: Final[Callable[[Any], str]] = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode
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
        ValueError: it is no JSON value.
    """
    msgspec = sys.modules.get("msgspec")
    if msgspec is not None:
        with suppress(UnicodeEncodeError):
            return bytes(msgspec.json.encode(value)) + b"\n"
    return to_bytes(_dense(value)) + b"\n"


def load(line: bytes) -> Any:
    """The JSON value in a line.

    Raises:
        ValueError: there is none.
    """
    msgspec = sys.modules.get("msgspec")
    if msgspec is not None:
        with suppress(msgspec.DecodeError, UnicodeError):
            return msgspec.json.decode(line)
    return json.loads(line)
