"""What follows an attempt that ended: done, another try after a delay, or the end of the task.

A pure decision from the facts; the runner carries it out. The steps beyond a retry (another worker, a fallback) have their
place here, between the retry and the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from taskgraph.core.limits import Limits
from taskgraph.core.task import Attempt

COMPLETED: Final = "completed"
FAILED: Final = "failed"
TIMEOUT: Final = "timeout"
STALLED: Final = "stalled"
LOST: Final = "lost"
INTERRUPTED: Final = "interrupted"
SUPERSEDED: Final = "superseded"

FREE: Final = frozenset({COMPLETED, INTERRUPTED, SUPERSEDED})
"""Outcomes that use up no retry."""

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126


class Decision(NamedTuple):
    """What to do with a task after its attempt.

    Attributes:
        action: ``complete``, ``retry``, ``release`` (back to pending at no cost) or, at the end, ``fail``, ``skip``,
            ``hold`` or ``stop``.
        delay: seconds before a retry.
        reason: why, as a sentence without a full stop.
    """

    action: str
    delay: float = 0.0
    reason: str = ""


def used(tries: Sequence[Attempt]) -> int:
    """How many of these attempts count against the retries."""
    return sum(1 for a in tries if a.get("outcome") not in FREE)


def delay_before(limits: Limits, failures: int) -> float:
    """Seconds before the retry that follows the given number of failures: ``retryDelay × backoff^(n-1)``, bounded."""
    try:
        delay = limits.retry_delay * limits.backoff ** max(0, failures - 1)
    except OverflowError:
        delay = float("inf")
    if limits.max_retry_delay:
        delay = min(delay, limits.max_retry_delay)
    return min(delay, 10.0 * 365 * 86400)


def deserves_retry(attempt: Attempt, limits: Limits) -> bool:
    """Whether a failed attempt is worth another: a command that cannot even start is not."""
    code = attempt.get("exitCode")
    if attempt.get("outcome") != FAILED:
        return True
    if limits.retry_exit_codes:
        return code in limits.retry_exit_codes
    return code not in (NOT_FOUND, NOT_EXECUTABLE)


def decide(tries: Sequence[Attempt], limits: Limits, *, claimed: bool = False) -> Decision:
    """What follows the last of these attempts.

    Args:
        tries: the attempts of the present visit, the last one with its outcome.
        limits: what holds for the task.
        claimed: whether an agent had claimed it: a claim that lapses gives the task back, unless retries are limited.
    """
    last = tries[-1]
    outcome = last.get("outcome", "")
    if outcome == COMPLETED:
        return Decision("complete")
    if outcome in FREE:
        return Decision("release", reason=outcome)
    why = describe(last)
    if claimed and outcome in (STALLED, LOST) and not limits.asked_retries:
        return Decision("release", reason=why)
    failures = used(tries)
    if failures <= limits.max_retries and deserves_retry(last, limits):
        return Decision("retry", delay_before(limits, failures), why)
    return Decision(limits.on_failure, reason=why)


def describe(attempt: Attempt) -> str:
    """How an attempt ended, in a few words that fit a sentence."""
    outcome = attempt.get("outcome", "")
    if error := attempt.get("error", ""):
        return error
    if outcome in (TIMEOUT, STALLED, LOST, INTERRUPTED, SUPERSEDED):
        return {
            TIMEOUT: "ran out of time",
            STALLED: "gave no sign of life",
            LOST: "vanished without a record",
            INTERRUPTED: "was interrupted",
            SUPERSEDED: "was superseded",
        }[outcome]
    if signal := attempt.get("signal", ""):
        return f"was ended by {signal}"
    code = attempt.get("exitCode")
    if code == NOT_FOUND:
        return "command not found (exit 127)"
    if code == NOT_EXECUTABLE:
        return "command not executable (exit 126)"
    return f"exit {code}" if code is not None else outcome
