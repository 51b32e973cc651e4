"""How long work has run and been silent, as its observer saw it.

An observer adds up only time that it watched by its own monotonic clock: a gap well beyond its planned wait counts as that
wait, and work seen for the first time gets a full limit. So a suspended laptop, a stopped runner, a clock step or a skewed
host stalls nobody. Pure: the clock is an argument.
"""

from __future__ import annotations

from typing import Final

SLACK: Final = 1.0
"""Seconds by which a look may be later than planned and still count in full: a busy observer is no suspended one."""


class Watch:
    """The observed age and silence of one attempt.

    Args:
        now: the observer's monotonic clock, in seconds.
        timeout: seconds the attempt may take; 0 for no limit.
        stall_timeout: seconds it may be silent; 0 for no limit.
        age: seconds it is known to have run before.
    """

    __slots__ = ("age", "seen", "sign", "silence", "stall_timeout", "timeout")

    def __init__(self, now: float, timeout: float, stall_timeout: float, age: float = 0.0) -> None:
        self.timeout, self.stall_timeout = timeout, stall_timeout
        self.age, self.silence = age, 0.0
        self.seen = now
        self.sign: object = None

    def look(self, now: float, planned: float, sign: object) -> None:
        """Take in a look at the attempt.

        Args:
            now: the observer's monotonic clock.
            planned: the longest the observer meant to wait before this look, in seconds.
            sign: the last signs of life, as times on any clocks: only that they change counts.
        """
        gap = max(0.0, now - self.seen)
        passed = gap if gap <= planned + SLACK else planned
        self.seen = now
        self.age += passed
        if self.sign is not None and sign == self.sign:
            self.silence += passed
        else:
            self.silence = 0.0
            self.sign = sign

    @property
    def verdict(self) -> str:
        """``timeout``, ``stalled`` or an empty text."""
        if self.timeout and self.age >= self.timeout:
            return "timeout"
        if self.stall_timeout and self.silence >= self.stall_timeout:
            return "stalled"
        return ""

    @property
    def left(self) -> float:
        """Seconds until a limit would be reached, if nothing stirs."""
        if not self.timeout and not self.stall_timeout:
            return float("inf")
        times = [
            limit - used for limit, used in ((self.timeout, self.age), (self.stall_timeout, self.silence)) if limit
        ]
        return max(0.0, min(times))
