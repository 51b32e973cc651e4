"""What a value in a task file may look like: tolerant where its meaning is certain, exact where it is not.

Each check takes a value as it was read and returns the value as it is kept, or raises `ValueError` with words that can follow
the name of the field. Knows nothing of tasks or files.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

STATUSES = ("pending", "in_progress", "completed", "failed", "skipped", "cancelled", "held")
TRIGGER_RULES = (
    "all_success",
    "all_done",
    "none_failed",
    "none_failed_min_one_success",
    "one_success",
    "one_failed",
)
ON_FAILURE = ("fail", "skip", "hold", "stop")


def shown(value: object) -> str:
    """A value as it can stand in a sentence, cut where it is long."""
    text = repr(value) if isinstance(value, str) else str(value).replace("True", "true").replace("None", "null")
    return text if len(text) <= 60 else text[:57] + "…"


def as_id(value: object) -> int:
    """An id: ``3``, ``3.0``, ``"3"`` and ``"#3"`` all mean 3."""
    if type(value) is int and value >= 1:
        return value
    if isinstance(value, float) and value.is_integer() and value >= 1:
        return int(value)
    if isinstance(value, str):
        digits = value.strip().removeprefix("#")
        if digits.isascii() and digits.isdigit() and int(digits) >= 1:
            return int(digits)
    raise ValueError(f"{shown(value)} is no task id (a whole number from 1)")


def as_ids(value: object) -> list[int]:
    """A list of ids, each once: one id stands for a list of one, null for none, ``"[1,2]"`` for itself."""
    if value is None:
        return []
    if isinstance(value, str) and value.strip().startswith("["):
        import json

        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError(f"{shown(value)} is no list of task ids") from None
    if not isinstance(value, list):
        return [as_id(value)]
    if all(type(item) is int for item in value) and len(set(value)) == len(value) and min(value, default=1) >= 1:
        return value
    return list(dict.fromkeys(as_id(item) for item in value))


def _number(value: object, what: str) -> float | int:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ValueError(f"{shown(value)} is no {what}") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise ValueError(f"{shown(value)} is no {what}")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def as_count(value: object) -> int:
    """A whole number from 0."""
    number = _number(value, "whole number from 0")
    if not isinstance(number, int) or number < 0:
        raise ValueError(f"{shown(value)} is no whole number from 0")
    return number


def as_seconds(value: object) -> float | int:
    """A number of seconds from 0; 0 means none."""
    number = _number(value, "number of seconds from 0")
    if number < 0:
        raise ValueError(f"{shown(value)} is no number of seconds from 0")
    return number


def as_factor(value: object) -> float | int:
    """A factor of 1 or more."""
    number = _number(value, "factor of 1 or more")
    if number < 1:
        raise ValueError(f"{shown(value)} is no factor of 1 or more")
    return number


def as_integer(value: object) -> int:
    """A whole number, also a negative one."""
    number = _number(value, "whole number")
    if not isinstance(number, int):
        raise ValueError(f"{shown(value)} is no whole number")
    return number


def as_text(value: object) -> str:
    """Text."""
    if isinstance(value, str):
        return value
    raise ValueError(f"{shown(value)} is no text")


def as_name(value: object) -> str:
    """A task name: letters, digits and ``_ . -``, not starting with a digit."""
    text = as_text(value)
    if text and not text[0].isdigit() and all(c.isalnum() or c in "_.-" for c in text) and not text.startswith("-"):
        return text
    raise ValueError(f"{shown(value)} is no name (letters, digits, '_', '.', '-'; not starting with a digit or '-')")


def as_texts(value: object) -> list[str]:
    """A list of texts; one text stands for a list of one, null for none."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise ValueError(f"{shown(value)} is no list of texts")


def as_object(value: object) -> dict[str, Any]:
    """A JSON object; null stands for an empty one."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise ValueError(f"{shown(value)} is no object")


def as_objects(value: object) -> list[dict[str, Any]]:
    """A list of JSON objects; null stands for none."""
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    raise ValueError(f"{shown(value)} is no list of objects")


_ATTEMPT: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("rung", "worker", "owner", "outcome", "signal", "error", "lastLine", "process"), (str,)),
    **dict.fromkeys(("startedAt", "finishedAt"), (str,)),
    **dict.fromkeys(("number", "visit", "exitCode", "maxRss"), (int,)),
    **dict.fromkeys(("cpu", "retryIn"), (int, float)),
}
_PROCESS = re.compile(r"[\w.-]+").fullmatch
_CALLED = {str: "text", int: "whole number", float: "number"}


def as_attempts(value: object) -> list[dict[str, Any]]:
    """The attempts of a task: objects, each with its number; what is null in one is absent."""
    attempts = as_objects(value)
    for attempt in attempts:
        if None in attempt.values():
            for key in [key for key, item in attempt.items() if item is None and key in _ATTEMPT]:
                del attempt[key]
        if "number" not in attempt:
            raise ValueError("an attempt has no number")
        for key, item in attempt.items():
            types = _ATTEMPT.get(key)
            if types is not None and type(item) not in types:
                raise ValueError(f"an attempt has the {key} {shown(item)}, which is no {_CALLED[types[-1]]}")
        for key in ("startedAt", "finishedAt"):
            if key in attempt:
                _moment(attempt[key])
        if "process" in attempt and not _PROCESS(attempt["process"]):
            raise ValueError(f"an attempt has the process {shown(attempt['process'])}, which is no name of one")
    return attempts


def as_environment(value: object) -> dict[str, str]:
    """Environment variables: an object of texts; numbers are taken as they are written."""
    pairs = as_object(value)
    for key, item in pairs.items():
        if not isinstance(item, str | int | float) or isinstance(item, bool):
            raise ValueError(f"{key} is {shown(item)}, which is no text")
        if not key or "=" in key or "\0" in key or "\0" in str(item):
            raise ValueError(f"{shown(key)} cannot be set as an environment variable")
    return {key: str(item) for key, item in pairs.items()}


def as_resources(value: object) -> dict[str, int]:
    """Demands for resources: an object of whole numbers; a list of names means one of each."""
    if isinstance(value, str | list):
        return dict.fromkeys(as_texts(value), 1)
    return {key: as_count(item) for key, item in as_object(value).items()}


def as_command(value: object) -> str | list[str]:
    """A text for ``/bin/sh -c``, or a list that is run as it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    raise ValueError(f"{shown(value)} is no command (a text for the shell, or a list of texts)")


def as_flag(value: object) -> bool:
    """true or false."""
    if isinstance(value, bool):
        return value
    raise ValueError(f"{shown(value)} is neither true nor false")


def as_any(value: object) -> Any:
    """Any JSON value."""
    return value


def as_exit_codes(value: object) -> list[int]:
    """A list of exit codes, 0 to 255; one stands for a list of one."""
    codes = [as_count(item) for item in (value if isinstance(value, list) else [value])]
    if any(code > 255 for code in codes):
        raise ValueError(f"{shown(value)} holds a number above 255, which is no exit code")
    return codes


def as_time(value: object) -> str:
    """A moment, ISO 8601; without a zone it is UTC."""
    text = as_text(value)
    _moment(text)
    return text


def as_choice(value: object, choices: tuple[str, ...], what: str) -> str:
    """One of the choices, written in any case and with ``-`` or blanks for ``_``."""
    if value in choices:
        return str(value)
    if isinstance(value, str):
        word = value.strip().lower().replace("-", "_").replace(" ", "_")
        word = "cancelled" if word == "canceled" else word
        if word in choices:
            return word
    raise ValueError(f"{shown(value)} is no {what} ({', '.join(choices)})")


def as_status(value: object) -> str:
    """One of the stored statuses."""
    return as_choice(value, STATUSES, "status")


def as_trigger_rule(value: object) -> str:
    """One of the trigger rules."""
    return as_choice(value, TRIGGER_RULES, "trigger rule")


def as_on_failure(value: object) -> str:
    """What is done when nothing is left to try."""
    return as_choice(value, ON_FAILURE, "choice")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        if moment.year in (1, 9999) and moment.tzinfo:
            # At the ends of the calendar another zone may have no such year.
            moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{shown(text)} is no moment (such as 2026-05-01T08:30:00Z)") from None
    return moment


def parse_time(text: str) -> float:
    """Seconds since 1970 of an ISO 8601 moment; without a zone it is UTC.

    Raises:
        ValueError: the text is no moment.
    """
    moment = _moment(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def format_time(seconds: float) -> str:
    """ISO 8601 in UTC with milliseconds and ``Z``, of seconds since 1970."""
    whole, rest = divmod(round(seconds * 1e6), 1_000_000)
    return f"{_second(whole)}.{rest // 1000:03d}Z"


@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    # Kept, since a run names the same second again and again.
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").removesuffix("+00:00")
