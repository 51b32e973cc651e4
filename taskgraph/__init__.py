"""taskgraph: a task graph in a plain folder, run with one command.

>>> from taskgraph import TaskManager
>>> manager = TaskManager("trip")
>>> task = manager.create("Book a hotel", blocked_by=[1])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskgraph.core.edit import Edges
    from taskgraph.core.fence import Caller
    from taskgraph.core.task import Task
    from taskgraph.errors import TaskgraphError
    from taskgraph.manager import TaskManager

__version__ = "0.1.0"
__all__ = ["Caller", "Edges", "Task", "TaskManager", "TaskgraphError", "__version__"]

_HOMES = {
    "Caller": "taskgraph.core.fence",
    "Edges": "taskgraph.core.edit",
    "Task": "taskgraph.core.task",
    "TaskManager": "taskgraph.manager",
    "TaskgraphError": "taskgraph.errors",
}


def __getattr__(name: str) -> Any:
    # Found when asked for: the start of every short command is paid for in milliseconds.
    if name in _HOMES:
        return getattr(__import__(_HOMES[name], fromlist=[name]), name)
    raise AttributeError(f"module 'taskgraph' has no attribute {name!r}")
