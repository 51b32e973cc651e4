"""What holds for a task: each value from the task, else its worker's profile, else the defaults, else the program.

Pure; settings arrive as data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from taskgraph.core.task import FIELDS, Task

INHERITED: Final = (
    "timeout", "stallTimeout", "maxRetries", "retryDelay", "backoff", "maxRetryDelay", "retryExitCodes", "onFailure",
)  # fmt: skip
"""The fields that a profile or the defaults may give for a task."""

DEFAULT_LEASE: Final = 600.0
"""Seconds without a sign of life after which a claim lapses."""


class Limits(NamedTuple):
    """The limits of one task, resolved: seconds, counts and choices as in `Task`; ``lease`` in seconds.

    ``asked_retries`` tells whether a number of retries was given anywhere.
    """

    timeout: float
    stall_timeout: float
    max_retries: int
    retry_delay: float
    backoff: float
    max_retry_delay: float
    retry_exit_codes: list[int]
    on_failure: str
    lease: float
    asked_retries: bool


_INHERITED: Final = frozenset(INHERITED)
_PLAIN: Final = Limits._make([*(FIELDS[key].default for key in INHERITED), DEFAULT_LEASE, False])

Settings = Mapping[str, Any]
"""``defaults``: JSON names to values; ``workers``: names to profiles of the same kind; ``resources``: names to capacities."""

PLAIN: Final[Settings] = {"defaults": {}, "workers": {}, "resources": {}}
"""Settings that say nothing."""


def resolve(task: Task, settings: Settings) -> Limits:
    """The limits that hold for a task at this moment."""
    data, defaults = task.data, settings["defaults"]
    profile = settings["workers"].get(data.get("worker", ""), {})
    if not defaults and not profile and _INHERITED.isdisjoint(data):
        return _PLAIN
    values: list[Any] = [
        data[key] if key in data else profile[key] if key in profile else defaults.get(key, FIELDS[key].default)
        for key in INHERITED
    ]
    lease = profile.get("lease", defaults.get("lease", DEFAULT_LEASE))
    asked = any("maxRetries" in source for source in (data, profile, defaults))
    return Limits._make([*values, lease, asked])
