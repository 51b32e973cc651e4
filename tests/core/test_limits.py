"""Where a limit comes from: the task, else its worker's profile, else the defaults, else the program."""

from __future__ import annotations

from typing import Any

import pytest

from taskgraph.core.limits import DEFAULT_LEASE, PLAIN, resolve
from tests.core.build import task

SETTINGS = {
    "defaults": {"maxRetries": 1, "timeout": 60, "lease": 30},
    "workers": {"slow": {"timeout": 600, "maxRetries": 0, "lease": 90}},
    "resources": {},
}


@pytest.mark.parametrize(
    ("fields", "timeout", "retries", "lease"),
    [
        ({}, 60, 1, 30),
        ({"worker": "slow"}, 600, 0, 90),
        ({"worker": "unheard of"}, 60, 1, 30),
        ({"timeout": 5}, 5, 1, 30),
        ({"worker": "slow", "timeout": 5}, 5, 0, 90),
        ({"timeout": 0, "maxRetries": 0}, 0, 0, 30),
    ],
)
def test_the_nearest_value_holds_and_zero_is_a_value(
    fields: dict[str, Any], timeout: int, retries: int, lease: int
) -> None:
    found = resolve(task(1, **fields), SETTINGS)
    assert (found.timeout, found.max_retries, found.lease) == (timeout, retries, lease)
    assert found.asked_retries


def test_without_settings_the_program_says() -> None:
    found = resolve(task(1), PLAIN)
    assert (found.timeout, found.stall_timeout, found.max_retries, found.backoff) == (0, 0, 0, 1)
    assert (found.on_failure, found.lease, found.retry_exit_codes) == ("fail", DEFAULT_LEASE, [])
    assert not found.asked_retries
    assert resolve(task(1, maxRetries=0), PLAIN).asked_retries
