"""The history of a store: `events.jsonl`, one JSON object a line, only ever appended to.

Ids grow by one. A line that was cut short when its writer was killed is fenced off by the next writer and passed over by
readers. Knows nothing of what the events mean.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from taskgraph import lines, regular

Event = dict[str, Any]
_BLOCK: Final = 65536
_MOST: Final = 1 << 53


class Mark(NamedTuple):
    """How far a history goes.

    Attributes:
        file: device and inode of the file; zeros where there is none.
        size: its bytes.
    """

    file: tuple[int, int]
    size: int

    def continues(self, earlier: Mark) -> bool:
        """Whether all that was there at an earlier mark is still at its place, so that only what follows is new."""
        return self.file == earlier.file and self.size >= earlier.size


_NOTHING: Final = Mark((0, 0), 0)


class History:
    """The events of the store in a folder.

    Args:
        root: the ``.tasks`` folder.
    """

    def __init__(self, root: str) -> None:
        self.path = os.path.join(root, "events.jsonl")
        self._fd = -1
        self._file = _NOTHING.file
        self._now: Mark | None = None
        self._size = -1
        self._last = 0
        self._torn = False

    def append(self, events: list[Event], by: str, *, durable: bool) -> None:
        """Add events, giving them their ids and their author; all of them or none. The caller holds the lock.

        Raises:
            OSError: they could not be written; the file is as it was.
        """
        fd, size = self._open(), self.now().size
        if size != self._size:
            self._last, self._torn = _last_id(fd, size)
        block = bytearray(b"\n" if self._torn else b"")
        last = self._last
        for event in events:
            last += 1
            # An event begins with at, event and task; the author goes behind its values.
            block += lines.dump({"id": last, **event, "by": by})
        try:
            if os.write(fd, block) != len(block):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
            if durable:
                os.fsync(fd)
        except OSError:
            os.ftruncate(fd, size)
            raise
        self._size, self._last, self._torn = size + len(block), last, False
        self._now = Mark(self._file, self._size)

    def begin(self) -> None:
        """A locked step begins: what was known of the file may have changed."""
        self._now = None

    def now(self) -> Mark:
        """Under the lock: how far the history goes; the system is asked once in a step."""
        if self._now is None:
            self._now = self.mark()
        return self._now

    def _open(self) -> int:
        """The descriptor of the file, kept from step to step unless somebody put another file in its place."""
        if self._fd < 0 or self.now().file != self._file:
            self.close()
            self._fd, st = regular.open_known(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            self._file = st.st_dev, st.st_ino
            self._now = Mark(self._file, st.st_size)
            self._size = -1
        return self._fd

    def close(self) -> None:
        """Let the file go; the next event opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()

    def mark(self) -> Mark:
        """How far the history goes at this moment."""
        try:
            st = os.stat(self.path)
        except OSError:
            return _NOTHING
        return Mark((st.st_dev, st.st_ino), st.st_size)

    def size(self) -> int:
        """How many bytes the history has now; 0 where there is none."""
        return self.mark().size

    def read(self, offset: int = 0) -> tuple[list[Event], int]:
        """The whole events from a byte offset on, and the offset behind the last whole line."""
        try:
            with open(regular.open_file(self.path), "rb") as file:
                file.seek(offset)
                block = file.read()
        except OSError:
            return [], offset
        end = block.rfind(b"\n") + 1
        return list(_parse(block[:end].split(b"\n"))), offset + end


def _parse(block: list[bytes]) -> Iterator[Event]:
    for line in block:
        if line.startswith(b"{"):
            try:
                event = lines.load(line)
            except ValueError:
                continue
            if isinstance(event, dict) and isinstance(event.get("id"), int) and event["id"] < _MOST:
                yield event


def _last_id(fd: int, size: int) -> tuple[int, bool]:
    """The id of the last whole event, and whether the file ends in the middle of a line."""
    if size == 0:
        return 0, False
    torn = os.pread(fd, 1, size - 1) != b"\n"
    start, length, rest = size, _BLOCK, b""
    while start > 0:
        begin = max(0, start - length)
        found = (os.pread(fd, start - begin, begin) + rest).split(b"\n")
        rest = found.pop(0) if begin else b""
        whole = list(_parse(found))
        if whole:
            return max(event["id"] for event in whole[-3:]), torn
        # Twice as much each time, so that a long line is put together about once.
        start, length = begin, length * 2
    return 0, torn
