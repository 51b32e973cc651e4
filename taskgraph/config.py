"""`.tasks/config.toml`, written by people, as checked settings.

Knows which tables and keys there may be; knows nothing of tasks on disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

from taskgraph import regular
from taskgraph.core import fields as f
from taskgraph.core.limits import INHERITED, PLAIN, Settings
from taskgraph.core.task import FIELDS
from taskgraph.errors import StoreError

_LIMITS: Final[dict[str, Callable[[Any], Any]]] = {
    **{key: FIELDS[key].check for key in INHERITED},
    "lease": f.as_seconds,
}
_DEFAULTS: Final = {**_LIMITS, "advisor": f.as_command, "holdBelow": f.as_seconds}
_WORKER: Final = {
    **_LIMITS, "command": f.as_command, "concurrency": f.as_count, "advisor": f.as_command,
    "env": f.as_environment, "cwd": f.as_text,
}  # fmt: skip


def load(root: str) -> Settings:
    """The settings of a store; plain ones where there is no file.

    Raises:
        StoreError: the file cannot be read, or a key is unknown or holds what it must not; names line and key.
    """
    path = os.path.join(root, "config.toml")
    try:
        raw = regular.read(path)
    except FileNotFoundError:
        return PLAIN
    except OSError as error:
        raise StoreError(path, f"cannot be read: {error.strerror}") from None
    # Imported here: most stores have no such file.
    import re
    import tomllib

    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
        data = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise StoreError(path, "the encoding is not UTF-8", raw.count(b"\n", 0, error.start) + 1) from None
    except tomllib.TOMLDecodeError as error:
        said = re.search(r"at line (\d+)", str(error))
        line = int(said[1]) if said else max(1, len(text.splitlines()))
        raise StoreError(path, f"no valid TOML: {error}", line) from None
    except RecursionError:
        raise StoreError(path, "the TOML is nested too deeply") from None
    return _checked(path, text, data)


def _checked(path: str, text: str, data: dict[str, Any]) -> Settings:
    unknown = [key for key in data if key not in PLAIN]
    if unknown:
        raise StoreError(path, f"unknown table or key {unknown[0]!r} (known: {', '.join(PLAIN)})",
                         _line(text, unknown[0]))  # fmt: skip
    for table in data:
        if not isinstance(data[table], dict):
            raise StoreError(path, f"{table!r} is no table; write [{table}]", _line(text, table))
    defaults = _table(path, text, "defaults", data.get("defaults", {}), _DEFAULTS)
    workers = {}
    for name, profile in data.get("workers", {}).items():
        if not isinstance(profile, dict):
            line = _line(text, f"workers.{name}")
            raise StoreError(path, f"'workers.{name}' is no table; write [workers.{name}]", line)
        workers[name] = _table(path, text, f"workers.{name}", profile, _WORKER)
    capacities: dict[str, Callable[[Any], Any]] = dict.fromkeys(data.get("resources", {}), f.as_count)
    resources = _table(path, text, "resources", data.get("resources", {}), capacities)
    return MappingProxyType({"defaults": defaults, "workers": workers, "resources": resources})


def _table(
    path: str, text: str, table: str, values: dict[str, Any], checks: dict[str, Callable[[Any], Any]]
) -> dict[str, Any]:
    checked = {}
    for key, value in values.items():
        if key not in checks:
            # Imported here: only a misspelt key needs it.
            from difflib import get_close_matches

            near = get_close_matches(key, checks, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f" (known: {', '.join(checks)})"
            raise StoreError(path, f"[{table}] has the unknown key {key!r}{hint}", _line(text, f"{table}.{key}"))
        try:
            checked[key] = checks[key](value)
        except ValueError as error:
            raise StoreError(path, f"[{table}] {key}: {error}", _line(text, f"{table}.{key}")) from None
    return checked


def _line(text: str, key: str) -> int | None:
    """The line that gives a key, dotted from the top, or else a part of it that holds it."""
    table, best, found = "", 0, None
    for number, line in enumerate(text.splitlines(), 1):
        head = line.partition("#")[0].strip()
        if head.startswith("["):
            table = here = _dotted(head.strip("[]"))
        elif "=" in head:
            here = _dotted(f"{table}.{head.partition('=')[0]}")
        else:
            continue
        if f"{key}.".startswith(f"{here}.") and len(here) > best:
            best, found = len(here), number
    return found


def _dotted(key: str) -> str:
    return ".".join(part.strip(" \t\"'") for part in key.split(".")).strip(".")
