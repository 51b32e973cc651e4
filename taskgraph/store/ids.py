"""New ids, none of them ever given out before. The caller holds the lock."""

from __future__ import annotations

import os
from typing import Final

from taskgraph import regular
from taskgraph.store import layout, replace
from taskgraph.store.events import History

_MARK: Final = ".highwatermark"


def allocate(root: str, count: int = 1) -> list[int]:
    """New ids, noted before they are used.

    Raises:
        OSError: the mark cannot be written.
    """
    high = highest_given(root)
    ids: list[int] = []
    while len(ids) < count:
        high += 1
        if not os.path.lexists(layout.task_path(root, high)):
            ids.append(high)
    reserve(root, high)
    return ids


def reserve(root: str, high: int) -> None:
    """Note that ids up to this one have been given out.

    Raises:
        OSError: the mark cannot be written.
    """
    replace.put(f"{root}/{_MARK}", f"{high}\n".encode(), durable=True)


def highest_given(root: str) -> int:
    """The highest id ever given out: from the mark or, where that is lost, from files, logs and history."""
    try:
        high = int(regular.read(f"{root}/{_MARK}", 1000))
        if high >= 0:
            return high
    except (OSError, ValueError):
        pass
    told = (event["task"] for event in History(root).read()[0] if isinstance(event.get("task"), int))
    return max([*layout.ids(root), *layout.logged(root), *told], default=0)


def has_mark(root: str) -> bool:
    """Whether there is a mark, readable or not."""
    return os.path.exists(f"{root}/{_MARK}")
