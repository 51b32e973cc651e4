"""Replacing files atomically: written beside, with mode and group, then renamed over; links are written through.

Knows paths and modes; knows nothing of tasks or of who may write.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

Stamp = tuple[int, int, int]
"""What tells one version of a file from another: time of change in ns, size in bytes, inode."""


def stamp(st: os.stat_result) -> Stamp:
    """The stamp of a file."""
    return st.st_mtime_ns, st.st_size, st.st_ino


def target(path: str) -> tuple[str, os.stat_result | None]:
    """The file to replace, behind a link if there is one, and what it is now, if it is there.

    Raises:
        OSError: it is no file, but a device, a pipe or a folder.
    """
    try:
        st = os.lstat(path)
        if stat.S_ISLNK(st.st_mode):
            path = os.path.realpath(path)
            st = os.stat(path)
    except FileNotFoundError:
        return path, None
    if not stat.S_ISREG(st.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return path, st


def beside(path: str, blob: bytes, old: os.stat_result | None, *, durable: bool) -> tuple[str, Stamp]:
    """Write the bytes to a temporary file beside another, with the mode and the group of that one.

    Args:
        path: the file that is to be replaced.
        blob: its new bytes.
        old: what it is now, if it is there.
        durable: whether the bytes must be on the disk.

    Returns:
        the temporary file, and its stamp.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    folder, name = os.path.split(path)
    temp = f"{folder}/.{name}.tmp"
    fd = _make(temp)
    try:
        view = memoryview(blob)
        while view:
            view = view[os.write(fd, view) :]
        st = os.fstat(fd)
        if old is not None:
            if (st.st_uid, st.st_gid) != (old.st_uid, old.st_gid):
                with suppress(OSError):
                    os.fchown(fd, old.st_uid if os.geteuid() == 0 else -1, old.st_gid)
            if st.st_mode != old.st_mode:
                os.fchmod(fd, stat.S_IMODE(old.st_mode))
        if durable:
            os.fsync(fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(temp)
        raise
    finally:
        os.close(fd)
    return temp, stamp(st)


def _make(temp: str) -> int:
    """A new file; one that a killed writer left, whoever that was, is garbage."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(temp, flags, 0o666)
    except FileExistsError:
        os.unlink(temp)
        return os.open(temp, flags, 0o666)


def put(path: str, blob: bytes, *, durable: bool) -> None:
    """Replace a file, or make it.

    Raises:
        OSError: it cannot be written; it is as it was.
    """
    real, old = target(path)
    temp, _ = beside(real, blob, old, durable=durable)
    os.replace(temp, real)


def sync_folder(folder: str) -> None:
    """Put the names in a folder on the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def is_leftover(name: str) -> bool:
    """Whether a file of the store is one that a killed writer left beside another."""
    return name.startswith((".task_", ".highwatermark", "..")) and name.endswith(".tmp")


def sweep(folder: str) -> None:
    """Under the lock: remove what killed writers left."""
    for name in os.listdir(folder):
        if is_leftover(name):
            with suppress(OSError):
                os.unlink(f"{folder}/{name}")
