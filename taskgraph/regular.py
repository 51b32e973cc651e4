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
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    kind = os.fstat(fd).st_mode
    if stat.S_ISREG(kind):
        return fd
    os.close(fd)
    if stat.S_ISDIR(kind):
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
