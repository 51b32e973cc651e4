"""Every fault that a user can meet: its sentence and its exit code.

Knows nothing of disks, tasks or terminals. Whoever raises one of these writes the one sentence that a person reads: which
thing, what is wrong, what to do.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_WAITING = 3
EXIT_NOT_FOUND = 4
EXIT_STORE = 5
EXIT_REFUSED = 6
EXIT_LOCKED = 7


class TaskgraphError(Exception):
    """A fault with a sentence for a person, an exit code for a script and details for a program.

    Args:
        message: one sentence, without a final full stop.
        details: what a program may want to know, as JSON values (for instance ``{"cycle": [1, 2, 1]}``).
    """

    exit_code = EXIT_FAILED
    kind = "error"

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def as_json(self) -> dict[str, object]:
        """The fault as one JSON object: ``kind``, ``message``, ``exitCode`` and the details."""
        return {"kind": self.kind, "message": self.message, "exitCode": self.exit_code, **self.details}


class UsageError(TaskgraphError):
    """Wrong usage: nothing was changed."""

    exit_code = EXIT_USAGE
    kind = "usage"


class CycleError(UsageError):
    """An edge would close a cycle; ``details["cycle"]`` lists its ids, the first one again at the end.

    A task that is to be made has no id yet, and is called so.
    """

    kind = "cycle"

    def __init__(self, cycle: list[int | str]) -> None:
        shown = [str(i) for i in (cycle if len(cycle) <= 12 else [*cycle[:6], *cycle[-5:]])]
        if len(cycle) > 12:
            shown.insert(6, f"… ({len(cycle) - 11} more) …")
        path = " → ".join(shown)
        super().__init__(f"that edge would close a cycle: {path}; nothing was changed", cycle=cycle)


class NothingToDo(TaskgraphError):
    """There is nothing to give just now; not a failure, but an answer a script can test for."""

    exit_code = EXIT_WAITING
    kind = "nothing"


class NotFoundError(TaskgraphError):
    """No such task, attempt or store."""

    exit_code = EXIT_NOT_FOUND
    kind = "not_found"


class StoreError(TaskgraphError):
    """A file of the store cannot be read or written.

    Args:
        path: the file, as the person may find it.
        reason: what is wrong with it.
        line: the line of the file, from 1, where one is known.
    """

    exit_code = EXIT_STORE
    kind = "store"

    def __init__(self, path: str, reason: str, line: int | None = None, **details: object) -> None:
        self.path, self.reason, self.line = path, reason, line
        where = f"{path}, line {line}" if line else path
        super().__init__(f"{where}: {reason}", path=path, line=line, reason=reason, **details)


class RefusedError(TaskgraphError):
    """An illegal move, a superseded attempt, a task of somebody else: nothing was changed."""

    exit_code = EXIT_REFUSED
    kind = "refused"


class LockedError(TaskgraphError):
    """The lock of the store could not be had in time."""

    exit_code = EXIT_LOCKED
    kind = "locked"
