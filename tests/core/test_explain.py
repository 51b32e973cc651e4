"""Why a task is not running, down to the root causes, in words and as data."""

from __future__ import annotations

import pytest

from taskgraph.core import moves
from taskgraph.core.explain import explain, roots
from taskgraph.core.fields import format_time
from taskgraph.core.graph import Graph
from taskgraph.core.task import Task
from taskgraph.errors import StoreError
from tests.core.build import AT, NOW, chain, graph_of, limits, task


def told(graph: Graph, task_id: int) -> dict[str, object]:
    return explain(graph, graph.tasks[task_id], NOW)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (task(1, command="true"), "Task 1 is ready to run."),
        (task(1), "Task 1 waits for a person to do it."),
        (task(1, owner="ann"), "Task 1 waits for ann to do it."),
        (task(1, name="hotel", command="x"), "Task 1 (hotel) is ready to run."),
        (task(1, "held", reason="too dear"), "held for a person to decide: too dear"),
        (task(1, "failed", reason="exit 3"), "failed: exit 3. 'taskgraph logs 1' shows its output"),
        (task(1, "in_progress", owner="ann", attempts=[{"number": 2}]), "is in progress with ann (attempt 2)"),
        (task(1, "in_progress", attempts=[{"number": 2, "process": "r.1"}]), "is in progress with a run (attempt 2)"),
        (task(1, "completed", stale=True), "completed, but an upstream was reopened since"),
        (task(1, "cancelled", reason="no longer"), "Task 1 cancelled: no longer."),
    ],
)
def test_a_task_that_waits_for_no_other(one: Task, words: str) -> None:
    found = told(graph_of(one), 1)
    assert words in str(found["text"])
    assert found["blockers"] == []


def test_each_blocker_is_named_with_what_it_waits_for_down_to_the_root() -> None:
    graph = graph_of(task(1, "held", reason="too dear"), task(2, up=(1,)), task(3, command="x"), task(4, up=(2, 3)))
    found = told(graph, 4)
    assert found["state"] == "blocked"
    assert found["text"] == (
        "Task 4 waits for 2, 3; 2 waits for 1. At the root: 3 is ready to run; "
        "1 is held for a person to decide: too dear."
    )
    assert found["rootCauses"] == [3, 1]
    assert found["blockers"] == [
        {"task": 2, "status": "pending", "why": "waits for 1", "waitsFor": [1]},
        {"task": 3, "status": "pending", "why": "is ready to run", "waitsFor": []},
        {"task": 1, "status": "held", "why": "is held for a person to decide: too dear", "waitsFor": []},
    ]


def test_missing_and_unreadable_tasks_are_told_apart() -> None:
    graph = graph_of(task(3, up=(1, 2)))
    graph.faults[2] = StoreError("task_2.json", "the file is empty")
    text = str(told(graph, 3)["text"])
    assert "1 does not exist" in text
    assert "2 cannot be read (task_2.json: the file is empty)" in text


def test_a_ring_is_named_in_the_direction_of_its_edges() -> None:
    graph = graph_of(task(1, up=(3,)), task(2, up=(1,)), task(3, up=(2,)), task(4, up=(3,)))
    found = told(graph, 1)
    assert "It waits for itself: 1 → 2 → 3 → 1" in str(found["text"])
    assert found["rootCauses"] == [1, 2, 3]
    assert "It waits for itself: 2 → 2" in str(told(graph_of(task(2, up=(2,))), 2)["text"])


def test_what_the_cascade_ended_is_traced_to_the_first_failure() -> None:
    graph = chain(4)
    moves.fail(graph, graph.tasks[1], AT, limits(), "no seats")
    found = told(graph, 4)
    assert found["text"] == "Task 4 cancelled, since 3 ended; at the root: 1 failed: no seats."
    assert found["rootCauses"] == [1]


def test_roots_are_found_through_tasks_that_were_not_read_yet() -> None:
    whole = chain(4)
    moves.fail(whole, whole.tasks[1], AT, limits(), "")
    lazy = Graph(whole.tasks.get)
    last = lazy.get(4)
    assert last is not None
    assert roots(lazy, last) == [1]


def test_two_roots_of_one_ending() -> None:
    graph = graph_of(task(1), task(2), task(3, up=(1, 2)))
    for culprit in (1, 2):
        moves.fail(graph, graph.tasks[culprit], AT, limits(), "")
    assert told(graph, 3)["rootCauses"] == [1, 2]


def test_a_delay_is_told_in_seconds_and_a_clock_that_was_changed_is_told_too() -> None:
    attempts = [{"number": 1, "outcome": "failed", "retryIn": 30}]
    soon = graph_of(task(1, attempts=attempts, notBefore=format_time(NOW + 12)))
    assert told(soon, 1)["text"] == "Task 1 waits 12.0 s more before its retry (last attempt: failed)."
    far = graph_of(task(1, attempts=attempts, notBefore=format_time(NOW + 86400)))
    assert "the clock has changed" in str(told(far, 1)["text"])


def test_a_long_chain_stays_one_paragraph() -> None:
    found = told(chain(3000), 3000)
    assert len(str(found["text"])) < 1500
    assert "more wait in turn" in str(found["text"])
    assert len(found["blockers"]) == 2999  # type: ignore[arg-type]
    assert found["rootCauses"] == [1]


def test_a_task_that_some_upstream_no_longer_stops_waits_only_for_the_others() -> None:
    graph = graph_of(task(1, "completed"), task(2), task(3, up=(1, 2)))
    assert [row["task"] for row in told(graph, 3)["blockers"]] == [2]  # type: ignore[attr-defined, index]
