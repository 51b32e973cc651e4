"""Who may report on a task: a table of callers and of states of the task."""

from __future__ import annotations

from typing import Any

import pytest

from taskgraph.core.fence import ANYBODY, Caller, check
from taskgraph.core.task import Task
from taskgraph.errors import EXIT_REFUSED, RefusedError
from tests.core.build import task


def claimed(owner: str, number: int = 1, before: tuple[dict[str, Any], ...] = ()) -> Task:
    attempts = [*before, {"number": number, "visit": 1, "owner": owner}]
    return task(1, "in_progress", owner=owner, attempts=attempts)


RUN = task(1, "in_progress", attempts=[{"number": 2, "visit": 1, "process": "r.1"}])
BY_ANN = claimed("ann")
BY_BOB = claimed("bob", 2, ({"number": 1, "visit": 1, "owner": "ann", "outcome": "stalled"},))
WAITING = task(1)
DONE = task(1, "completed", owner="ann", attempts=[{"number": 1, "visit": 1, "owner": "ann", "outcome": "completed"}])
LAPSED = task(1, attempts=[{"number": 1, "visit": 1, "owner": "ann", "outcome": "stalled"}])
GIVEN_BACK = task(1, attempts=[{"number": 1, "visit": 1, "owner": "ann", "outcome": "interrupted"}])
DONE_BY_BOB = task(
    1, "completed", owner="bob",
    attempts=[{"number": 1, "owner": "ann", "outcome": "stalled"}, {"number": 2, "owner": "bob", "outcome": "completed"}],
)  # fmt: skip


@pytest.mark.parametrize(
    ("one", "caller", "passes"),
    [
        # A task that nobody works on.
        (WAITING, ANYBODY, True),
        (WAITING, Caller("ann"), True),
        (WAITING, Caller("", 1), False),
        (GIVEN_BACK, Caller("ann"), True),
        (LAPSED, Caller("bob"), True),
        (LAPSED, Caller("ann"), False),
        (LAPSED, Caller("ann", 1), False),
        # A claimed one.
        (BY_ANN, Caller("ann"), True),
        (BY_ANN, Caller("ann", 1), True),
        (BY_ANN, Caller("", 1), True),
        (BY_ANN, ANYBODY, False),
        (BY_ANN, Caller("bob"), False),
        (BY_ANN, Caller("bob", 1), False),
        (BY_ANN, Caller("ann", 2), False),
        # One that was taken over.
        (BY_BOB, Caller("ann"), False),
        (BY_BOB, Caller("ann", 1), False),
        (BY_BOB, Caller("", 1), False),
        (BY_BOB, Caller("bob", 2), True),
        # One that a runner has.
        (RUN, Caller("", 2), True),
        (RUN, Caller("", 1), False),
        (RUN, ANYBODY, False),
        (RUN, Caller("ann"), False),
        # One that has ended.
        (DONE, Caller("ann"), True),
        (DONE, Caller("ann", 1), False),
        (DONE_BY_BOB, Caller("ann"), False),
        (DONE_BY_BOB, Caller("bob"), True),
        (DONE_BY_BOB, ANYBODY, True),
    ],
)
def test_who_may_report(one: Task, caller: Caller, passes: bool) -> None:
    before = dict(one.data)
    if passes:
        check(one, caller)
    else:
        with pytest.raises(RefusedError) as caught:
            check(one, caller)
        assert caught.value.exit_code == EXIT_REFUSED
    assert one.data == before
    check(one, caller._replace(force=True))


def test_a_late_report_is_told_who_has_the_task_now() -> None:
    with pytest.raises(RefusedError) as caught:
        check(BY_BOB, Caller("ann", 1))
    assert "attempt 1 of task 1 is no longer current: it is with bob (attempt 2)" in caught.value.message
    assert (caught.value.details["owner"], caught.value.details["attempt"]) == ("bob", 2)


def test_somebody_who_gave_no_name_is_told_whose_the_task_is() -> None:
    with pytest.raises(RefusedError, match=r"task 1 belongs to ann \(attempt 1\), and no --owner was given"):
        check(BY_ANN, ANYBODY)


def test_what_is_being_run_is_told_with_the_way_to_stop_it() -> None:
    with pytest.raises(RefusedError, match=r"is being run \(attempt 2\).*taskgraph cancel 1"):
        check(RUN, Caller("ann"))
