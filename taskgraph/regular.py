"""Opening files that must be files: a pipe or a device in their place holds nobody up.

A pipe would be waited for without end, past every signal, and a device may have no end. So nothing is waited for, and what is
no regular file is a fault. Knows nothing of stores.
"""

from __future__ import annotations

import errno
import os
import stat


def open_file(path: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """The descriptor of a regular file.

    Raises:
        OSError: it cannot be opened, or it is no regular file.
    """
    return open_known(path, flags, mode)[0]


def open_known(path: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> tuple[int, os.stat_result]:
    """The same, with what the file is.

    Raises:
        OSError: it cannot be opened, or it is no regular file.
    """
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    st = os.fstat(fd)
    if stat.S_ISREG(st.st_mode):
        return fd, st
    os.close(fd)
    if stat.S_ISDIR(st.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "it is no regular file", path)


def read(path: str, longest: int | None = None) -> bytes:
    """The bytes of a regular file.

    Raises:
        OSError: it cannot be read, is no regular file, or has more than ``longest`` bytes.
    """
    with open(open_file(path), "rb") as file:
        if longest is not None and os.fstat(file.fileno()).st_size > longest:
            raise OSError(errno.EFBIG, f"it is longer than {longest} bytes", path)
        return file.read()
