"""Changes written down before they are in their files: what a promise says, and on which version of a file it holds."""

from __future__ import annotations

import pytest

from taskgraph.core import moves
from taskgraph.core.task import Task
from taskgraph.store import promises
from tests.core.build import AT, graph_of, task


def started() -> tuple[Task, Task]:
    """A task as it was, and the same after a start."""
    before = task(1, owner="", notBefore=AT, reason="again", blocks=[2])
    after = Task(dict(before.data), before.stamp)
    moves.start(graph_of(after), after, AT, process="r.1")
    return before, after


def only(block: bytes) -> promises.Promise:
    """The one promise in a block."""
    (promise,) = promises.parse(block)
    return promise


def test_laying_a_promise_over_the_old_version_gives_the_new_one() -> None:
    before, after = started()
    promise = only(promises.line(after))
    assert (promise.task, promise.before) == (1, "pending")
    assert promise.lay_over(before)
    assert before.data == after.data


def test_laying_it_over_twice_does_nothing_more() -> None:
    before, after = started()
    promise = only(promises.line(after))
    assert promise.lay_over(before)
    before.was = None
    assert not promise.lay_over(before)
    assert before.was is None
    assert len(before.attempts) == 1


def ended(number: int, **facts: object) -> dict[str, object]:
    """An attempt that is over."""
    return {"number": number, "startedAt": AT, "outcome": "completed", **facts}


@pytest.mark.parametrize(
    ("on_disk", "promised", "laid"),
    [
        ([], {"number": 1}, True),
        ([{"number": 1}], {"number": 1}, False),
        ([{"number": 1}], ended(1), True),
        ([ended(1)], {"number": 2}, True),
        ([ended(1, finishedAt=AT)], {"number": 1, "startedAt": AT}, False),
        ([ended(1, exitCode=0)], ended(1), False),
        ([ended(1), {"number": 2}], {"number": 1}, False),
        ([ended(1), {"number": 2}], ended(1), False),
    ],
)
def test_a_file_that_is_further_than_a_promise_stays_as_it_is(
    on_disk: list[dict[str, object]], promised: dict[str, object], laid: bool
) -> None:
    """A runner may be killed between writing a file and taking back what it had promised of it."""
    found = task(1, "completed", attempts=on_disk)
    promise = promises.Promise(1, {"status": "in_progress", "attempts": [promised]}, [], "completed")
    assert promise.lay_over(found) is laid
    assert (found.status == "in_progress") is laid


@pytest.mark.parametrize("status", ["cancelled", "held", "completed", "skipped"])
def test_over_a_status_that_somebody_set_meanwhile_only_the_attempts_are_laid(status: str) -> None:
    _, after = started()
    found = task(1, status, reason="by hand")
    assert only(promises.line(after)).lay_over(found)
    assert (found.status, found.reason, len(found.attempts)) == (status, "by hand", 1)


def test_edges_are_never_promised() -> None:
    """They belong to two files; readers compute what they mean from the statuses."""
    before, after = started()
    after.blocked_by = [7]
    after.blocks = []
    promise = only(promises.line(after))
    assert not {"blockedBy", "unblockedBy", "blocks"} & (promise.put.keys() | set(promise.cleared))
    promise.lay_over(before)
    assert before.blocks == [2]


def test_a_change_that_touches_no_attempt_promises_nothing() -> None:
    one = task(1, attempts=[{"number": 1, "outcome": "lost"}])
    one.owner = "ann"
    assert promises.line(one) == b""


def test_texts_of_any_kind_fit_on_a_line() -> None:
    _, after = started()
    after.reason = "two\nlines\r and a\u2028separator \ud800"
    block = promises.line(after) * 2
    assert block.count(b"\n") == 2
    assert [p.put["reason"] for p in promises.parse(block)] == [after.reason] * 2


@pytest.mark.parametrize(
    "junk",
    [
        pytest.param(b"[" * 100_000, id="deep"),
        b"no json",
        b"[1]",
        b"{}",
        b"[true, [], {}, []]",
        b'[1, [], {"attempts": [{}]}, []]',
        b"[1, 2, 3, 4]",
        b"[1, {}, [], 5]",
        b"\xff",
    ],
)
def test_a_line_that_makes_no_sense_is_passed_over_and_the_next_is_not(junk: bytes) -> None:
    _, after = started()
    assert only(junk + b"\n" + promises.line(after)).task == 1
