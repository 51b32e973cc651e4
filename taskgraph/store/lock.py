"""The one lock of a store: bounded wait, a named holder, never inherited, never left behind.

The file stays where it is; the kernel lets the lock go when its process ends, however it ends. In the file stand the holder's
pid, host and time, what the folder looked like when the last holder let go, and the starts that a runner has promised but not
yet written into task files: whoever takes the lock next writes them first.

The lock is the kernel's ``flock`` on the file. It is tried at once; where somebody else holds it, filelock does the waiting, on
the same file with the same call. So the common case pays neither for filelock's import (as much as the rest of a short
command) nor for its book-keeping. Knows nothing of tasks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
import zlib
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from taskgraph import regular
from taskgraph.core.fields import format_time
from taskgraph.errors import LockedError, StoreError

TIMEOUT: Final = 10.0
"""Seconds that a writer waits for the lock."""

NAME: Final = ".lock"
"""The file in the ``.tasks`` folder."""

_HEAD: Final = 160
_LONGEST: Final = 1 << 20
_MODE: Final = 0o664


class Record(NamedTuple):
    """What stands in the lock file.

    Attributes:
        pid: of the present or last holder.
        host: of the present or last holder.
        since: when it took the lock, ``-`` after it has let go.
        look: what the folder looked like when it let go, ``-`` before.
        promised: starts that are not yet in task files, as JSON lines.
    """

    pid: str
    host: str
    since: str
    look: str
    promised: bytes


def read(path: str) -> Record | None:
    """What stands in a lock file, or None where that makes no sense."""
    try:
        fd = regular.open_file(path)
    except OSError:
        return None
    try:
        return _parse(os.pread(fd, _HEAD, 0), lambda size: os.pread(fd, size, _HEAD))
    except OSError:
        return None
    finally:
        os.close(fd)


def _parse(head: bytes, rest: Callable[[int], bytes]) -> Record | None:
    try:
        pid, host, since, look, length, check = head.decode("ascii").split()
        size = int(length)
    except ValueError:
        return None
    if not 0 <= size <= _LONGEST:
        return None
    promised = rest(size) if size else b""
    return Record(pid, host, since, look, promised if f"{zlib.crc32(promised):x}" == check else b"")


class StoreLock:
    """The lock of the store in a folder; not re-entrant.

    Args:
        root: the ``.tasks`` folder.
        timeout: seconds to wait for it.

    Attributes:
        undisturbed: after taking it, whether the folder is as the last holder left it: nobody made, moved or removed a
            file in it since, and no holder was killed half-way.
        promised: after taking it, the starts that others promised.
    """

    def __init__(self, root: str, timeout: float = TIMEOUT) -> None:
        self.path = os.path.join(root, NAME)
        self.timeout = timeout
        self.undisturbed = False
        self.promised = b""
        self._root = root
        self._fd = -1
        self._let_go: Callable[[], object] = lambda: None
        self._since = ""
        self._mine: bytes | None = None
        self._host = os.uname().nodename[:60]

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            LockedError: another process held it for the whole time.
            StoreError: the store cannot be written.
        """
        try:
            if not self._take_at_once():
                self._wait()
            record = _parse(os.pread(self._fd, _HEAD, 0), lambda size: os.pread(self._fd, size, _HEAD))
            self.undisturbed = record is not None and record.since == "-" and record.look == self._look()
            others = record is None or record.promised != self._mine
            self.promised = record.promised if record is not None and others else b""
            self._since = format_time(time.time())
            self.note(record.promised if record is not None else b"")
        except OSError as error:
            self._drop()
            raise StoreError(self.path, f"cannot be locked: {error.strerror or error}") from None

    def note(self, promised: bytes) -> None:
        """Under the lock: write down who holds it, and the starts that are promised but not yet in task files."""
        self._write(self._since, "-", promised)

    def keep(self, promised: bytes) -> None:
        """Under the lock: what is still promised when it is let go."""
        self._mine = promised

    @property
    def noted(self) -> bool:
        """Whether starts are noted as promised."""
        return bool(self._mine)

    def release(self, *, in_order: bool = True) -> None:
        """Let the lock go, noting what the folder looks like.

        Args:
            in_order: whether all that others did to the folder has been taken in; if not, the next holder has to.
        """
        try:
            self._write("-", self._look() if in_order else "?", self._mine or b"")
        finally:
            self._drop()

    def _take_at_once(self) -> bool:
        while True:
            fd = regular.open_file(self.path, os.O_RDWR | os.O_CREAT, _MODE)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(fd).st_nlink:
                    self._fd, self._let_go = fd, partial(os.close, fd)
                    return True
            except BlockingIOError:
                os.close(fd)
                return False
            except BaseException:
                os.close(fd)
                raise
            # Somebody removed the file between our opening and our locking it.
            os.close(fd)

    def _wait(self) -> None:
        # Imported here: only who has to wait needs it.
        import filelock

        def opened(fd: int) -> None:
            self._fd = fd

        waiting = filelock.FileLock(
            self.path, mode=_MODE, thread_local=False, poll_interval=0.005,
            fallback_to_soft=False, preserve_lock_file=True, on_acquired=opened,
        )  # fmt: skip
        try:
            waiting.acquire(timeout=self.timeout)
        except filelock.Timeout:
            raise LockedError(f"{self._holder()}; tried for {self.timeout:g} s and changed nothing") from None
        self._let_go = waiting.release

    def _drop(self) -> None:
        self._fd = -1
        let_go, self._let_go = self._let_go, lambda: None
        let_go()

    def _look(self) -> str:
        return f"{os.stat(self._root).st_mtime_ns:x}"

    def _write(self, since: str, look: str, promised: bytes) -> None:
        head = f"{os.getpid()} {self._host} {since} {look} {len(promised)} {zlib.crc32(promised):x}"
        block = f"{head:<{_HEAD - 1}.{_HEAD - 1}}\n".encode("ascii", "replace") + promised
        if os.pwrite(self._fd, block, 0) != len(block):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        self._mine = promised

    def _holder(self) -> str:
        record = read(self.path)
        if record is None:
            return "the store is locked by another process"
        if record.since == "-":
            return f"the store is locked by a process that left no note (the last that did was pid {record.pid})"
        where = "" if record.host == os.uname().nodename else f" on {record.host}"
        return f"the store is locked by pid {record.pid}{where} since {record.since}"
