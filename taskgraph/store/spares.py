"""Replacing files without making and deleting one each time: a new version is written to a spare and changes places with it.

A run replaces thousands of small files. Making a file, renaming it over another and deleting that other costs a file system
several times as much as exchanging two names, and ever more with each deleted file. So the version that was replaced becomes
the next spare.

A spare is written to only while nobody else has it open, which a write lease (``fcntl(2)``, F_SETLEASE) tells for certain,
and only while no other name leads to it. It is cut to nothing first, so that ext4 puts its new data on the disk no later than
the names that lead to it, as it does for a file that is renamed over another. Where a system cannot do all of this, `replace`
says so, and the caller replaces the file the usual way. Knows nothing of tasks.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_F_SETSIG: Final = 10
_COUNT: Final = 24


class Spares:
    """A few files to change places with.

    Args:
        stem: path and beginning of the names of the spares, on the file system of the files to be replaced.
    """

    def __init__(self, stem: str) -> None:
        self._names = deque(f"{stem}.{n}.spare" for n in range(_COUNT))
        self._exchange = _find_exchange()
        self._refused = 0

    def replace(self, target: str, blob: bytes, old: os.stat_result) -> os.stat_result | None:
        """Put bytes in the place of a file, whose mode and owner stay.

        Args:
            target: an existing file, no link.
            blob: its new bytes.
            old: what it is now.

        Returns:
            what it is now, or None where it must be replaced the usual way.
        """
        if self._exchange is None or self._refused > _COUNT or old.st_nlink != 1:
            return None
        name = self._names.popleft()
        self._names.append(name)
        try:
            new = _fill(name, blob, old)
        except OSError:
            new = None
        if new is None or self._exchange(_AT_FDCWD, name.encode(), _AT_FDCWD, target.encode(), _RENAME_EXCHANGE) != 0:
            self._refused += 1
            with suppress(OSError):
                os.unlink(name)
            return None
        self._refused = 0
        return new

    def discard(self) -> None:
        """Remove the spares."""
        for name in self._names:
            with suppress(OSError):
                os.unlink(name)


def _fill(name: str, blob: bytes, old: os.stat_result) -> os.stat_result | None:
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, stat.S_IMODE(old.st_mode))
    try:
        # Should a reader that found the old name wake up just now, the kernel would tell us by SIGIO, which is deadly.
        fcntl.fcntl(fd, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        st = os.fstat(fd)
        if st.st_nlink != 1:
            return None
        if st.st_size:
            os.ftruncate(fd, 0)
        if os.write(fd, blob) != len(blob):
            return None
        if st.st_mode != old.st_mode:
            os.fchmod(fd, stat.S_IMODE(old.st_mode))
        if (st.st_uid, st.st_gid) != (old.st_uid, old.st_gid):
            os.fchown(fd, old.st_uid, old.st_gid)
        return os.fstat(fd)
    finally:
        os.close(fd)


def _find_exchange() -> Callable[..., Any] | None:
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    # Imported here: only a run replaces enough files to need it.
    import ctypes

    function: Callable[..., Any] | None = getattr(ctypes.CDLL(None), "renameat2", None)
    return function
