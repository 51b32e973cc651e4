"""A task: the fields of its file, each described once.

A `Task` keeps the object that was read, so unknown fields and the order of the keys survive, and remembers which keys were
changed since, so a write changes only what is meant. JSON names are camelCase, Python names the same words in snake_case.
Knows nothing of disks, other tasks or what statuses mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypedDict, TypeVar, overload

from taskgraph.core import fields as f

T = TypeVar("T")

MISSING: Final = object()
"""Stands in `Task.was` for a key that was not there."""


class Attempt(TypedDict, total=False):
    """One start of a task.

    ``number`` only grows and is the fence; times are ISO 8601; ``maxRss`` is bytes, ``cpu`` and ``retryIn`` are seconds.
    """

    number: int
    visit: int
    rung: str
    worker: str
    owner: str
    startedAt: str
    finishedAt: str
    outcome: str
    exitCode: int
    signal: str
    error: str
    lastLine: str
    maxRss: int
    cpu: float
    process: str
    retryIn: float


class Field(Generic[T]):
    """One field of the task file, as a typed attribute of `Task`.

    Args:
        key: the JSON name.
        default: what an absent field means (never changed in place).
        check: turns a value as read into the value as kept, or raises `ValueError`.
        doc: one sentence for people, editors and language models.
    """

    __slots__ = ("check", "default", "doc", "key")

    def __init__(self, key: str, default: T, check: Callable[[Any], Any], doc: str) -> None:
        self.key, self.default, self.check, self.doc = key, default, check, doc

    @overload
    def __get__(self, task: None, owner: type) -> Field[T]: ...
    @overload
    def __get__(self, task: Task, owner: type) -> T: ...
    def __get__(self, task: Task | None, owner: type) -> T | Field[T]:
        if task is None:
            return self
        value: T = task.data.get(self.key, self.default)
        return value

    def __set__(self, task: Task, value: T) -> None:
        task.put(self.key, value)


class Task:
    """One task, backed by the JSON object of its file.

    Attributes:
        data: the JSON object; change it through the fields or `put`, never in place.
        was: for each changed key, the value before its first change (`MISSING` where there was none).
        dirty: where the task notes its id when it is changed, given by the `Graph` it is in.
        stamp: what the store knows of the file this was read from; None for a task that has no file yet.
    """

    __slots__ = ("data", "dirty", "stamp", "was")

    id = Field[int]("id", 0, f.as_id, "The number of the task; the name of its file.")
    subject = Field[str]("subject", "", f.as_text, "What is to be done, in a line.")
    description = Field[str]("description", "", f.as_text, "What is to be done, at length.")
    status = Field[str]("status", "pending", f.as_status, "Where the task stands.")
    blocked_by = Field[list[int]]("blockedBy", [], f.as_ids, "Upstream tasks that have not settled.")
    blocks = Field[list[int]]("blocks", [], f.as_ids, "Every downstream task.")
    owner = Field[str]("owner", "", f.as_text, "Who works on the task, or has reserved it.")

    name = Field[str]("name", "", f.as_name, "A unique name, usable wherever an id is.")
    labels = Field[list[str]]("labels", [], f.as_texts, "Words to filter by.")
    notes = Field[list[str]]("notes", [], f.as_texts, "Notes that people and agents left.")
    metadata = Field[dict[str, Any]]("metadata", {}, f.as_object, "Free for other programs.")
    parent = Field[str]("parent", "", f.as_text, "The group the task belongs to.")
    plan = Field[str]("plan", "", f.as_text, "The plan the task came from.")
    created_at = Field[str]("createdAt", "", f.as_time, "When the task was made.")
    updated_at = Field[str]("updatedAt", "", f.as_time, "When the task was last changed by a command.")

    unblocked_by = Field[list[int]]("unblockedBy", [], f.as_ids, "Upstream tasks that have settled.")
    trigger_rule = Field[str](
        "triggerRule", "all_success", f.as_trigger_rule, "When, judged by its upstreams, the task may start."
    )

    command = Field[str | list[str]](
        "command", "", f.as_command, "What is run: a text for /bin/sh -c, or a list of arguments run as they are."
    )
    worker = Field[str]("worker", "", f.as_text, "The worker that does the task.")
    workers = Field[list[str]]("workers", [], f.as_texts, "The workers that may do the task, the preferred one first.")
    cwd = Field[str]("cwd", "", f.as_text, "The folder to run in; relative to the one that holds the store.")
    env = Field[dict[str, str]]("env", {}, f.as_environment, "Environment variables for the command.")
    resources = Field[dict[str, int]]("resources", {}, f.as_resources, "Units of shared resources held while running.")
    priority = Field[int]("priority", 0, f.as_integer, "Higher starts first.")

    timeout = Field[float]("timeout", 0, f.as_seconds, "Seconds an attempt may take; 0 means no limit.")
    stall_timeout = Field[float]("stallTimeout", 0, f.as_seconds, "Seconds an attempt may be silent; 0 means no limit.")
    max_retries = Field[int]("maxRetries", 0, f.as_count, "How many more attempts a visit may have after its first.")
    retry_delay = Field[float]("retryDelay", 0, f.as_seconds, "Seconds before the first retry.")
    backoff = Field[float]("backoff", 1, f.as_factor, "What each further delay is multiplied by.")
    max_retry_delay = Field[float]("maxRetryDelay", 0, f.as_seconds, "The longest delay in seconds; 0 means no limit.")
    retry_exit_codes = Field[list[int]](
        "retryExitCodes", [], f.as_exit_codes, "Where given, only these exit codes deserve a retry."
    )
    on_failure = Field[str]("onFailure", "fail", f.as_on_failure, "What is done when no retry is left.")

    reason = Field[str]("reason", "", f.as_text, "Why the task is where it is.")
    cause = Field[list[int]]("cause", [], f.as_ids, "The direct upstreams whose ending ended this task.")
    started_at = Field[str]("startedAt", "", f.as_time, "When the present or last attempt started.")
    finished_at = Field[str]("finishedAt", "", f.as_time, "When the task settled.")
    heartbeat_at = Field[str]("heartbeatAt", "", f.as_time, "The last sign of life, as it was last written.")
    not_before = Field[str]("notBefore", "", f.as_time, "A retry waits until then.")
    attempts = Field[list[Attempt]]("attempts", [], f.as_attempts, "Every start of the task, the oldest first.")
    visits = Field[int]("visits", 1, f.as_count, "How often the task was begun anew, the first time included.")
    result = Field[Any]("result", None, f.as_any, "What the task answered: any JSON value.")
    waived = Field[bool]("waived", False, f.as_flag, "Skipped as not needed: dependents go on.")
    stale = Field[bool]("stale", False, f.as_flag, "An upstream was reopened after this task had used it.")

    def __init__(self, data: dict[str, Any], stamp: object = None) -> None:
        self.data = data
        self.was: dict[str, Any] | None = None
        self.dirty: set[int] | None = None
        self.stamp = stamp

    def put(self, key: str, value: Any) -> None:
        """Set the value of a JSON key, remembering what it was."""
        old = self.data.get(key, MISSING)
        if old is MISSING or old != value or type(old) is not type(value):
            self._remember(key, old)
            self.data[key] = value

    def clear(self, *keys: str) -> None:
        """Take JSON keys out, remembering what they were."""
        for key in keys:
            if key in self.data:
                self._remember(key, self.data.pop(key))

    def own(self, key: str) -> list[int]:
        """The list of ids under a JSON key, to be changed in place; it is copied once, however many changes follow."""
        kept: list[int] = self.data.get(key, [])
        if self.was is None or key not in self.was:
            self._remember(key, self.data.get(key, MISSING))
            kept = self.data[key] = kept.copy()
        return kept

    def _remember(self, key: str, old: Any) -> None:
        if self.was is None:
            self.was = {key: old}
            if self.dirty is not None:
                self.dirty.add(self.data["id"])
        else:
            self.was.setdefault(key, old)

    def has(self, key: str) -> bool:
        """Whether the JSON key was given."""
        return key in self.data

    @property
    def upstream(self) -> list[int]:
        """Every task this one waits for or has waited for."""
        data = self.data
        return [*data.get("blockedBy", ()), *data.get("unblockedBy", ())]

    @property
    def visit(self) -> int:
        """The number of the present visit, from 1."""
        visits: int = self.data.get("visits", 1)
        return max(1, visits)

    @property
    def tries(self) -> list[Attempt]:
        """The attempts of the present visit, the oldest first."""
        visit = self.visit
        return [a for a in self.data.get("attempts", ()) if a.get("visit", 1) == visit]

    @property
    def current(self) -> Attempt | None:
        """The attempt that is under way, if one is."""
        attempts: list[Attempt] | None = self.data.get("attempts")
        return attempts[-1] if attempts and "outcome" not in attempts[-1] else None

    @property
    def runs(self) -> bool:
        """Whether a runner has it under way, and not a person or an agent."""
        return "process" in (self.current or ())

    @property
    def manual(self) -> bool:
        """Whether a person or an agent completes the task, since nothing runs for it."""
        return "command" not in self.data and not self.data.get("worker") and not self.data.get("workers")

    @property
    def title(self) -> str:
        """The task as a sentence may name it."""
        name = self.name
        return f"task {self.id} ({name})" if name else f"task {self.id}"

    def __repr__(self) -> str:
        return f"<Task {self.id} {self.status} {self.subject!r}>"


FIELDS: Final[dict[str, Field[Any]]] = {field.key: field for field in vars(Task).values() if isinstance(field, Field)}
"""Every field by its JSON name, in the order of the file."""

FIRST: Final = ("id", "subject", "description", "status", "blockedBy", "blocks", "owner")
"""The fields that are always written."""

_NULL_MEANS_SOMETHING: Final = frozenset({"id", "result"})
_CHECKS: Final = {key: field.check for key, field in FIELDS.items()}


class FieldError(ValueError):
    """A field holds what it must not: ``key`` names it."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key}: {why}")
        self.key = key


def normalise(data: dict[str, Any]) -> dict[str, Any]:
    """Bring the known fields of a JSON object into the forms in which they are kept, in place.

    Raises:
        FieldError: a field holds a value whose meaning is not certain.
    """
    for key, value in data.items():
        check = _CHECKS.get(key)
        if check is None or (value is None and key not in _NULL_MEANS_SOMETHING):
            continue
        try:
            data[key] = check(value)
        except ValueError as error:
            raise FieldError(key, str(error)) from None
    if None in data.values():
        for key in [k for k, v in data.items() if v is None and k in FIELDS and k not in _NULL_MEANS_SOMETHING]:
            if key in FIRST:
                data[key] = type(FIELDS[key].default)(FIELDS[key].default)
            else:
                del data[key]
    return data


def new_task(task_id: int, **values: Any) -> Task:
    """A task that has no file yet, its fields in the order of the file.

    Args:
        task_id: its id.
        **values: fields by their JSON names.

    Raises:
        FieldError: a field holds a value that cannot be kept.
    """
    given = normalise({key: value for key, value in values.items() if value is not None})
    first: dict[str, Any] = {
        "id": task_id, "subject": "", "description": "", "status": "pending",
        "blockedBy": [], "blocks": [], "owner": "",
    }  # fmt: skip
    ordered = {key: given[key] for key in FIELDS if key in given and key not in first}
    unknown = {key: value for key, value in given.items() if key not in FIELDS}
    task = Task({**first, **{k: v for k, v in given.items() if k in first}, **ordered, **unknown, "id": task_id})
    task.was = {}
    return task
