"""Where a command runs: inside a running task, or not."""

from __future__ import annotations

import os


def inside(root: str) -> tuple[int, int] | None:
    """The task and attempt of this store inside which the command runs, if it does."""
    env = os.environ
    try:
        task, attempt = int(env["TASKGRAPH_TASK_ID"]), int(env["TASKGRAPH_ATTEMPT"])
        same = os.path.samefile(env["TASKGRAPH_DIR"], root)
    except (KeyError, ValueError, OSError):
        return None
    return (task, attempt) if same else None
