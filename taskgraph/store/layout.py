"""Where everything of a store lies, and how a store is found. Opens no file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from taskgraph.core.task import Task
from taskgraph.errors import NotFoundError, StoreError

FOLDER: Final = ".tasks"
_TASK_FILE: Final = re.compile(r"task_([1-9][0-9]*)\.json")

IGNORED: Final = ("run/", "logs/", ".lock", "events.jsonl")
"""What `.gitignore` keeps out of git."""


def task_path(root: str, task_id: int) -> str:
    """The file of a task."""
    return f"{root}/task_{task_id}.json"


def id_of(name: str) -> int | None:
    """The id in the name of a task file, or None where it is no such name."""
    match = _TASK_FILE.fullmatch(name)
    return int(match[1]) if match else None


def log_path(root: str, task_id: int, attempt: int) -> str:
    """The log of an attempt."""
    return f"{root}/logs/{task_id}.{attempt}.log"


def ids(root: str) -> list[int]:
    """The ids that have a file, in order.

    Raises:
        OSError: the folder cannot be read.
    """
    return sorted(i for name in os.listdir(root) if (i := id_of(name)) is not None)


def logged(root: str) -> dict[int, int]:
    """The highest attempt of each task that has left a log."""
    found: dict[int, int] = {}
    for name in os.listdir(f"{root}/logs") if os.path.isdir(f"{root}/logs") else ():
        task, _, rest = name.partition(".")
        number = rest.removesuffix(".log")
        if task.isdigit() and number.isdigit():
            found[int(task)] = max(found.get(int(task), 0), int(number))
    return found


def highest_log(root: str, task: Task, known: int = 0) -> int:
    """The highest attempt of a task that is on record or has left a log although its record is gone; ``known`` is one."""
    number = max((attempt["number"] for attempt in task.attempts), default=0)
    number = max(number, known)
    while os.path.exists(log_path(root, task.id, number + 1)):
        number += 1
    return number


def run_path(root: str, task_id: int, attempt: int, what: str) -> str:
    """What an attempt leaves in `run/`: ``out`` (its result), ``in`` (its inputs), ``beat``, ``report``."""
    return f"{root}/run/{task_id}.{attempt}.{what}"


def runner_path(root: str, runner: str) -> str:
    """The file that a runner holds locked while it lives, and touches as its heartbeat."""
    return f"{root}/run/{runner}.lock"


def keeper_path(root: str, keeper: str) -> str:
    """The record of a keeper, which it holds locked while it lives."""
    return f"{root}/run/{keeper}.jsonl"


def find(where: str | None, env: Mapping[str, str], cwd: str) -> str:
    """The ``.tasks`` folder: the one named, else ``TASKGRAPH_DIR``, else the nearest one upwards.

    Args:
        where: a ``.tasks`` folder or the folder that holds one, or None.
        env: the environment.
        cwd: where to look upwards from.

    Raises:
        NotFoundError: there is no store.
        StoreError: there is something of that name that is no folder.
    """
    named = where or env.get("TASKGRAPH_DIR")
    if named:
        root = expected(named, cwd)
        if not os.path.exists(root):
            raise NotFoundError(f"no store at {root}; make one with 'taskgraph init'")
        return _folder(root)
    here = cwd
    while True:
        candidate = os.path.join(here, FOLDER)
        if os.path.lexists(candidate):
            return _folder(candidate)
        parent = os.path.dirname(here)
        if parent == here:
            raise NotFoundError(f"no {FOLDER} folder in {cwd} or above; make one with 'taskgraph init'")
        here = parent


def expected(where: str | None, cwd: str) -> str:
    """Where the store named by a folder is, or would be made."""
    path = os.path.abspath(os.path.join(cwd, where or "."))
    inside = os.path.join(path, FOLDER)
    if os.path.basename(path) == FOLDER or (not os.path.exists(inside) and looks_like_store(path)):
        return path
    return inside


def looks_like_store(path: str) -> bool:
    """Whether a folder of any name is a store, by the files in it."""
    return os.path.exists(os.path.join(path, ".highwatermark"))


def _folder(path: str) -> str:
    if not os.path.isdir(path):
        raise StoreError(path, "is not a folder, so it cannot be a store; move it away or name another with -C")
    return path
