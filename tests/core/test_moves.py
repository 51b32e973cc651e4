"""What each verb does: start, end, reopen, skip, cancel, hold, release."""

from __future__ import annotations

from typing import Any

import pytest

from taskgraph.core import moves
from taskgraph.core.fields import format_time
from taskgraph.core.graph import Graph
from taskgraph.core.task import Task
from taskgraph.errors import RefusedError
from tests.core.build import AT, NOW, chain, graph_of, limits, settle, statuses, task

LATER = format_time(NOW + 60)


def running(**values: Any) -> tuple[Graph, Task]:
    graph = graph_of(one := task(1, **values), task(2, up=(1,)))
    moves.start(graph, one, AT, process="r.1")
    settle(graph)
    return graph, one


def test_a_start_adds_an_attempt_whose_number_only_grows() -> None:
    graph = graph_of(one := task(1))
    assert moves.start(graph, one, AT, owner="ann", worker="")["number"] == 1
    assert (one.status, one.owner, one.started_at) == ("in_progress", "ann", AT)
    assert one.current == {"number": 1, "visit": 1, "rung": "first", "startedAt": AT, "owner": "ann"}
    moves.release(graph, one, AT)
    assert moves.start(graph, one, AT, floor=7)["number"] == 8


def test_a_number_also_grows_past_a_log_that_an_edit_forgot() -> None:
    graph = graph_of(one := task(1, attempts=[{"number": 4, "outcome": "lost"}]))
    assert moves.start(graph, one, AT, floor=2)["number"] == 5


def test_an_attempt_after_a_failure_is_a_retry_and_one_after_an_interruption_is_not() -> None:
    graph, one = running(maxRetries=1)
    moves.conclude(graph, one, AT, limits(maxRetries=1), {"outcome": "interrupted"})
    assert moves.start(graph, one, AT)["rung"] == "first"
    moves.conclude(graph, one, AT, limits(maxRetries=1), {"outcome": "failed"})
    assert moves.start(graph, one, AT)["rung"] == "retry"


@pytest.mark.parametrize("status", ["completed", "failed", "skipped", "cancelled"])
def test_what_has_settled_is_not_started(status: str) -> None:
    graph = graph_of(one := task(1, status))
    with pytest.raises(RefusedError, match=f"task 1 is {status} and cannot become in_progress"):
        moves.start(graph, one, AT)


def test_what_is_under_way_is_not_started_again_and_the_holder_is_named() -> None:
    graph = graph_of(one := task(1))
    moves.start(graph, one, AT, owner="ann")
    with pytest.raises(RefusedError, match=r"already claimed by ann \(attempt 1\)"):
        moves.start(graph, one, AT, force=True)


@pytest.mark.parametrize("verb", ["start", "complete"])
def test_a_blocked_task_is_refused_with_its_blockers_named_and_force_is_recorded(verb: str) -> None:
    graph = graph_of(task(1), task(2), one := task(3, up=(1, 2)))
    act = moves.start if verb == "start" else moves.complete
    with pytest.raises(RefusedError, match="task 3 is blocked by 1, 2") as caught:
        act(graph, one, AT)
    assert caught.value.details["blockedBy"] == [1, 2]
    assert graph.events == []
    act(graph, one, AT, force=True)
    assert graph.events[0]["forced"] is True


def test_a_retry_that_is_not_due_is_refused_with_the_seconds_left() -> None:
    graph, one = running(maxRetries=1)
    moves.conclude(graph, one, AT, limits(maxRetries=1, retryDelay=30), {"outcome": "failed"})
    assert one.not_before == format_time(NOW + 30)
    assert one.attempts[-1]["retryIn"] == 30
    with pytest.raises(RefusedError, match=r"waits 30\.0 s more for its retry"):
        moves.start(graph, one, AT)
    moves.start(graph, one, LATER)
    assert one.not_before == ""


def test_an_ending_writes_the_attempt_the_event_and_what_is_below() -> None:
    graph, one = running()
    facts = {"outcome": "failed", "exitCode": 3, "signal": "", "lastLine": "no room", "maxRss": 1000}
    decision = moves.conclude(graph, one, LATER, limits(), facts)
    assert decision.action == "fail"
    ended = one.attempts[-1]
    assert (ended["outcome"], ended["exitCode"], ended["finishedAt"], ended["lastLine"]) == (
        "failed",
        3,
        LATER,
        "no room",
    )
    assert "signal" not in ended
    assert (one.status, one.reason, one.finished_at) == ("failed", "exit 3", LATER)
    event = graph.events[0]
    assert (event["event"], event["attempt"], event["exitCode"], event["reason"]) == ("failed", 1, 3, "exit 3")
    assert graph.tasks[2].status == "cancelled"


@pytest.mark.parametrize(
    ("on_failure", "status", "below"),
    [("fail", "failed", "cancelled"), ("skip", "skipped", "pending"), ("hold", "held", "pending"),
     ("stop", "failed", "cancelled")],
)  # fmt: skip
def test_the_last_step_of_the_ladder(on_failure: str, status: str, below: str) -> None:
    graph, one = running()
    moves.conclude(graph, one, AT, limits(onFailure=on_failure), {"outcome": "failed", "exitCode": 1})
    assert (one.status, graph.tasks[2].status, one.reason) == (status, below, "exit 1")
    assert one.waived is (on_failure == "skip")
    assert (graph.events[0].get("rung") == "stop") is (on_failure == "stop")


def test_a_lapsed_claim_gives_the_task_back_without_its_owner() -> None:
    graph = graph_of(one := task(1))
    moves.start(graph, one, AT, owner="ann")
    moves.conclude(graph, one, AT, limits(), {"outcome": "stalled"})
    assert (one.status, one.owner, one.attempts[-1]["outcome"]) == ("pending", "", "stalled")


def test_a_result_is_kept_and_an_absent_one_leaves_no_trace() -> None:
    for result in ({"price": 3}, [], None):
        graph, one = running()
        moves.conclude(graph, one, AT, limits(), {"outcome": "completed", "exitCode": 0}, result)
        assert one.status == "completed"
        assert one.has("result") is (result is not None)
        assert one.result == result


def test_completing_twice_changes_nothing_and_a_later_result_is_taken() -> None:
    graph = chain(2)
    moves.complete(graph, graph.tasks[1], AT, result=1)
    settle(graph)
    moves.complete(graph, graph.tasks[1], LATER)
    assert (graph.events, graph.tasks[1].finished_at) == ([], AT)
    moves.complete(graph, graph.tasks[1], LATER, result=2)
    assert (graph.events[0]["event"], graph.tasks[1].result) == ("result", 2)


@pytest.mark.parametrize("status", ["failed", "skipped", "cancelled", "held"])
def test_a_person_may_complete_what_did_not(status: str) -> None:
    graph = graph_of(one := task(1, status, reason="broken"))
    moves.complete(graph, one, AT)
    assert (one.status, one.reason) == ("completed", "")


def test_a_person_may_fail_a_task_that_never_ran_and_an_attempt_may_be_retried() -> None:
    graph = graph_of(one := task(1, maxRetries=1))
    moves.fail(graph, one, AT, limits(maxRetries=1), "no seats")
    assert (one.status, one.reason) == ("failed", "no seats")
    moves.reopen(graph, one, AT)
    moves.start(graph, one, AT, owner="ann")
    moves.fail(graph, one, AT, limits(maxRetries=1), "no seats")
    assert (one.status, one.attempts[-1]["error"], one.owner) == ("pending", "no seats", "")


@pytest.mark.parametrize(("to", "below"), [("skipped", "pending"), ("cancelled", "cancelled"), ("held", "pending")])
def test_putting_aside_interrupts_the_attempt(to: str, below: str) -> None:
    graph, one = running()
    assert moves.put_aside(graph, one, AT, to, "enough")
    assert (one.status, one.reason, one.attempts[-1]["outcome"]) == (to, "enough", "interrupted")
    assert graph.tasks[2].status == below
    settle(graph)
    assert not moves.put_aside(graph, one, AT, to, "enough")
    assert not graph.dirty


def test_release_gives_back_claimed_and_held_tasks_and_nothing_else() -> None:
    graph = graph_of(one := task(1), held := task(2, "held"), done := task(3, "completed"))
    moves.start(graph, one, AT, owner="ann")
    moves.release(graph, one, AT, "lunch")
    assert (one.status, one.owner, one.attempts[-1]["outcome"]) == ("pending", "", "interrupted")
    assert graph.events[-1]["why"] == "lunch"
    moves.release(graph, held, AT)
    assert held.status == "pending"
    with pytest.raises(RefusedError, match="nothing to release"):
        moves.release(graph, done, AT)


def test_a_held_task_below_a_failed_one_is_ended_when_it_is_released() -> None:
    graph = graph_of(task(1), one := task(2, "held", up=(1,)))
    moves.fail(graph, graph.tasks[1], AT, limits(), "")
    assert one.status == "held"
    moves.release(graph, one, AT)
    assert (one.status, one.cause) == ("cancelled", [1])


def test_reopening_begins_a_visit_with_a_fresh_set_of_retries_and_keeps_the_history() -> None:
    graph, one = running(maxRetries=1)
    for _ in range(2):
        moves.conclude(graph, one, AT, limits(maxRetries=1), {"outcome": "failed", "exitCode": 1})
        if one.status == "pending":
            moves.start(graph, one, AT, process="r.1")
    assert one.status == "failed"
    one.result = {"old": True}
    moves.reopen(graph, one, AT)
    assert (one.status, one.visits, one.tries, len(one.attempts)) == ("pending", 2, [], 2)
    assert not {"result", "reason", "finishedAt", "startedAt"} & one.data.keys()
    assert moves.start(graph, one, AT)["visit"] == 2
    assert moves.conclude(graph, one, AT, limits(maxRetries=1), {"outcome": "failed"}).action == "retry"


def test_reopening_what_waits_does_nothing_and_what_runs_is_refused() -> None:
    graph, one = running()
    assert moves.reopen(graph, graph.tasks[2], AT) == []
    assert graph.events == []
    with pytest.raises(RefusedError, match="task 1 is in progress"):
        moves.reopen(graph, one, AT)


def below_a_finished_task() -> Graph:
    return graph_of(
        task(1, "completed"),
        task(2, "completed", up=(1,)),
        task(3, "in_progress", up=(2,), attempts=[{"number": 1}]),
        task(4, up=(1,)),
        task(5, "held", up=(1,)),
        task(6, "completed", up=(3,)),
        task(7, "completed"),
    )


def test_reopening_marks_what_used_the_old_result_and_makes_the_rest_wait() -> None:
    graph = below_a_finished_task()
    assert sorted(moves.reopen(graph, graph.tasks[1], AT)) == [2, 3, 6]
    assert [i for i, t in graph.tasks.items() if t.stale] == [2, 3, 6]
    assert (graph.tasks[4].blocked_by, graph.tasks[5].blocked_by) == ([1], [1])
    assert statuses(graph)[2] == "completed"


def test_reopening_downstream_takes_finished_dependents_along_and_leaves_running_ones() -> None:
    graph = below_a_finished_task()
    assert moves.reopen(graph, graph.tasks[1], AT, downstream=True) == [3]
    assert statuses(graph) == {
        1: "pending", 2: "pending", 3: "in_progress", 4: "pending", 5: "held", 6: "pending", 7: "completed",
    }  # fmt: skip
    assert [i for i, t in graph.tasks.items() if t.stale] == [3]


def test_reopening_downstream_reaches_below_a_task_that_is_open_already() -> None:
    graph = below_a_finished_task()
    moves.reopen(graph, graph.tasks[1], AT)
    visit = graph.tasks[1].visit
    assert moves.reopen(graph, graph.tasks[1], AT, downstream=True) == [3]
    assert (statuses(graph)[2], statuses(graph)[6], graph.tasks[1].visit) == ("pending", "pending", visit)


def test_a_running_task_that_used_the_old_result_is_still_marked_when_it_completes() -> None:
    graph = graph_of(task(1, "completed"), one := task(2, up=(1,)))
    moves.start(graph, one, AT, process="r.1")
    moves.reopen(graph, graph.tasks[1], AT)
    moves.conclude(graph, one, AT, limits(), {"outcome": "completed"})
    assert (one.status, one.stale) == ("completed", True)


def test_the_mark_goes_with_the_next_attempt_or_the_next_visit() -> None:
    graph = graph_of(task(1, "completed"), one := task(2, up=(1,)), done := task(3, "completed", up=(1,)))
    moves.start(graph, one, AT, process="r.1")
    moves.reopen(graph, graph.tasks[1], AT)
    moves.conclude(graph, one, AT, limits(), {"outcome": "interrupted"})
    moves.complete(graph, graph.tasks[1], AT)
    moves.start(graph, one, AT, process="r.1")
    assert not one.stale
    assert done.stale
    moves.reopen(graph, done, AT)
    assert not done.stale


def test_a_reservation_survives_a_reopening_and_the_owner_of_a_command_does_not() -> None:
    graph = graph_of(
        manual := task(1, "completed", owner="ann"), command := task(2, "completed", owner="ann", command="x")
    )
    moves.reopen(graph, manual, AT)
    moves.reopen(graph, command, AT)
    assert (manual.owner, command.owner) == ("ann", "")
