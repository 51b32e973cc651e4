"""The presence of a runner: a file that it holds locked while it lives, and touches as its heartbeat."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress

from taskgraph.errors import StoreError
from taskgraph.store import layout

_BEAT = 1.0


def exists(runner: str) -> bool:
    """Whether a process of this system has the pid in the name of a runner."""
    pid = runner.rpartition("-")[2]
    if not (pid.isascii() and pid.isdigit() and len(pid) < 10):
        return False
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except OSError:
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except (OSError, IndexError):
        return True


class Presence:
    """Makes a runner known while it is entered.

    Args:
        root: the ``.tasks`` folder.

    Attributes:
        name: the name of the runner, unique for all time.

    Raises:
        StoreError: the store cannot be written.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.name = f"r{time.time_ns() // 1000:x}-{os.getpid()}"
        self.path = layout.runner_path(root, self.name)
        self._fd = -1
        self._next = 0.0

    def __enter__(self) -> Presence:
        try:
            self._appear()
        except OSError as error:
            raise StoreError(error.filename or f"{self.root}/run", f"cannot be written: {error.strerror}") from None
        return self

    def _appear(self) -> None:
        for folder in ("run", "logs"):
            os.makedirs(f"{self.root}/{folder}", exist_ok=True)
        while not self._take():
            pass

    def _take(self) -> bool:
        """Make and lock the file; False if another run tidied it away in between."""
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(self._fd), os.stat(self.path)):
                return True
        except FileNotFoundError:
            pass
        os.close(self._fd)
        return False

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            os.unlink(self.path)
        os.close(self._fd)

    def beat(self, now: float) -> None:
        """Touch the file, once a second."""
        if now >= self._next:
            self._next = now + _BEAT
            with suppress(OSError):
                os.utime(self._fd)
                if not os.fstat(self._fd).st_nlink:
                    # Somebody tidied up in here: be known again.
                    os.close(self._fd)
                    self._appear()
