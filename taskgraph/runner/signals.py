"""Signals that ask a run to end, and the pipe that wakes it when one arrives."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Any

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Counts INT, TERM and HUP while it is entered; one that was ignored at the start stays ignored (as ``nohup`` wants).

    Attributes:
        fd: can be read when a signal has arrived.
        count: how many have arrived.
        number: the first one, 0 before.
    """

    def __init__(self) -> None:
        self.count = 0
        self.number = 0
        self.fd, self._waker = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._waker, False)
        self._before: list[tuple[int, Any]] = []
        self._wakeup = -1

    def __enter__(self) -> Signals:
        for number in _ASKING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before.append((number, signal.signal(number, self._arrived)))
        self._wakeup = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before:
            signal.signal(number, handler)
        os.close(self.fd)
        os.close(self._waker)

    def _arrived(self, number: int, _: FrameType | None) -> None:
        self.count += 1
        self.number = self.number or number

    def drain(self) -> None:
        """Empty the pipe."""
        try:
            while os.read(self.fd, 512):
                pass
        except BlockingIOError:
            pass
