"""taskgraph: a task graph in a plain folder, run with one command.

>>> from taskgraph import TaskManager
>>> manager = TaskManager("trip")
>>> task = manager.create("Book a hotel", blocked_by=[1])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskgraph.core.fence import Caller
    from taskgraph.manager import TaskManager

__version__ = "0.1.0"
__all__ = ["Caller", "TaskManager", "__version__"]


def __getattr__(name: str) -> Any:
    # Found when asked for: the start of every short command is paid for in milliseconds.
    if name == "TaskManager":
        from taskgraph.manager import TaskManager

        return TaskManager
    if name == "Caller":
        from taskgraph.core.fence import Caller

        return Caller
    raise AttributeError(f"module 'taskgraph' has no attribute {name!r}")
