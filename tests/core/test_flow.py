"""Endings flow down, repairs flow down, and the outcome depends on the statuses alone, never on the order of events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taskgraph.core import moves
from taskgraph.core.fields import STATUSES, TRIGGER_RULES
from taskgraph.core.flow import flow, mirror, reconcile, settle_in
from taskgraph.core.graph import Graph
from taskgraph.core.status import SETTLED, move
from taskgraph.core.task import Task
from tests.core.build import AT, chain, graph_of, limits, settle, statuses, task


def fail(graph: Graph, task_id: int) -> None:
    moves.fail(graph, graph.tasks[task_id], AT, limits(), "broken")


def diamond(**rule: Any) -> Graph:
    return graph_of(task(1), task(2, up=(1,)), task(3, up=(1,)), task(4, up=(2, 3), **rule))


def test_completion_clears_the_blockers_of_every_dependent() -> None:
    graph = graph_of(task(1), task(2, up=(1,)), task(3, up=(1, 2)))
    moves.complete(graph, graph.tasks[1], AT)
    assert (graph.tasks[2].blocked_by, graph.tasks[2].unblocked_by) == ([], [1])
    assert (graph.tasks[3].blocked_by, graph.tasks[3].unblocked_by) == ([2], [1])
    assert graph.tasks[1].blocks == [2, 3]


def test_a_failure_flows_down_to_the_end_and_each_names_its_direct_cause() -> None:
    graph = chain(4)
    fail(graph, 1)
    assert statuses(graph) == {1: "failed", 2: "cancelled", 3: "cancelled", 4: "cancelled"}
    assert [graph.tasks[i].cause for i in (2, 3, 4)] == [[1], [2], [3]]
    assert [e["event"] for e in graph.events] == ["failed", "cancelled", "cancelled", "cancelled"]


def test_a_failure_at_the_top_of_a_chain_of_five_thousand_reaches_the_end() -> None:
    graph = chain(5000)
    fail(graph, 1)
    assert list(statuses(graph).values()).count("cancelled") == 4999
    moves.reopen(graph, graph.tasks[1], AT)
    assert set(statuses(graph).values()) == {"pending"}


@pytest.mark.parametrize("repair", ["reopen", "complete", "skip"])
def test_a_repair_flows_down_as_the_failure_did(repair: str) -> None:
    graph = chain(3)
    fail(graph, 1)
    if repair == "reopen":
        moves.reopen(graph, graph.tasks[1], AT)
    elif repair == "complete":
        moves.complete(graph, graph.tasks[1], AT)
    else:
        moves.put_aside(graph, graph.tasks[1], AT, "skipped", "")
    assert [graph.tasks[i].status for i in (2, 3)] == ["pending", "pending"]
    assert [graph.tasks[i].cause for i in (2, 3)] == [[], []]
    assert graph.tasks[2].blocked_by == ([1] if repair == "reopen" else [])


def test_what_a_person_cancelled_stays_cancelled_through_failure_and_repair() -> None:
    graph = chain(3)
    moves.put_aside(graph, graph.tasks[2], AT, "cancelled", "not wanted")
    assert (graph.tasks[3].status, graph.tasks[3].cause) == ("cancelled", [2])
    fail(graph, 1)
    moves.reopen(graph, graph.tasks[1], AT)
    assert statuses(graph) == {1: "pending", 2: "cancelled", 3: "cancelled"}
    assert (graph.tasks[2].cause, graph.tasks[2].reason) == ([], "not wanted")


def test_a_person_who_cancels_what_the_cascade_ended_takes_it_over_with_a_reason() -> None:
    graph = chain(2)
    fail(graph, 1)
    assert moves.put_aside(graph, graph.tasks[2], AT, "cancelled", "no longer")
    assert (graph.tasks[2].cause, graph.tasks[2].reason) == ([], "no longer")
    moves.complete(graph, graph.tasks[1], AT)
    assert graph.tasks[2].status == "cancelled"


def test_one_of_two_culprits_repaired_is_not_enough() -> None:
    graph = diamond()
    moves.complete(graph, graph.tasks[1], AT)
    fail(graph, 2)
    fail(graph, 3)
    assert (graph.tasks[4].status, graph.tasks[4].cause) == ("cancelled", [2, 3])
    moves.complete(graph, graph.tasks[2], AT)
    assert (graph.tasks[4].status, graph.tasks[4].cause) == ("cancelled", [3])
    moves.complete(graph, graph.tasks[3], AT)
    assert graph.tasks[4].status == "pending"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("all_success", "cancelled"), ("all_done", "pending"), ("none_failed", "cancelled"), ("one_success", "pending"),
     ("one_failed", "pending"), ("none_failed_min_one_success", "cancelled")],
)  # fmt: skip
def test_what_a_failure_does_under_each_rule(rule: str, expected: str) -> None:
    graph = diamond(triggerRule=rule)
    moves.complete(graph, graph.tasks[1], AT)
    fail(graph, 2)
    moves.complete(graph, graph.tasks[3], AT)
    assert graph.tasks[4].status == expected


@pytest.mark.parametrize(("rule", "status"), [("none_failed", "pending"), ("all_success", "cancelled")])
def test_a_persons_cancellation_is_neither_success_nor_failure(rule: str, status: str) -> None:
    graph = graph_of(task(1), task(2, up=(1,), triggerRule=rule))
    moves.put_aside(graph, graph.tasks[1], AT, "cancelled", "")
    assert graph.tasks[2].status == status


def test_a_waived_task_lets_its_dependents_go_on_a_passed_over_one_passes_them_over() -> None:
    graph = graph_of(
        task(1), task(2, up=(1,)), task(3, up=(2,)), task(4, "completed"), task(5, up=(4,), triggerRule="one_failed")
    )
    graph.tasks[3].blocked_by = [2]
    moves.put_aside(graph, graph.tasks[1], AT, "skipped", "")
    assert (graph.tasks[1].waived, graph.tasks[2].status, graph.tasks[2].blocked_by) == (True, "pending", [])
    reconcile(graph, AT)
    assert (graph.tasks[5].status, graph.tasks[5].cause) == ("skipped", [4])


def test_running_and_finished_tasks_are_never_ended_by_the_cascade() -> None:
    graph = graph_of(
        task(1), *(task(i, status, up=(1,)) for i, status in enumerate(STATUSES, 2) if status != "pending")
    )
    before = statuses(graph)
    fail(graph, 1)
    assert statuses(graph) == {**before, 1: "failed"}


@pytest.mark.parametrize("outcome", ["failed", "interrupted"])
def test_a_running_task_whose_upstream_failed_meanwhile_is_ended_when_it_comes_back(outcome: str) -> None:
    graph = graph_of(task(1, "completed"), task(2, up=(1,), maxRetries=3), task(3, up=(2,)))
    moves.start(graph, graph.tasks[2], AT, process="r.1")
    moves.reopen(graph, graph.tasks[1], AT)
    fail(graph, 1)
    assert graph.tasks[2].status == "in_progress"
    moves.conclude(graph, graph.tasks[2], AT, limits(maxRetries=3), {"outcome": outcome})
    assert (graph.tasks[2].status, graph.tasks[2].cause) == ("cancelled", [1])
    assert (graph.tasks[3].status, graph.tasks[3].cause) == ("cancelled", [2])


def test_a_flow_says_what_it_touched() -> None:
    graph = graph_of(task(1), task(2, up=(1,)), task(3, up=(2,)), task(4))
    move(graph, graph.tasks[1], "failed", "failed", AT)
    assert sorted(flow(graph, [1], AT)) == [2, 3]
    assert graph.touched >= {1, 2, 3}


def test_an_edge_written_on_one_side_is_completed() -> None:
    graph = Graph()
    for each in (task(1, blocks=[2]), task(2), task(3, up=(1,)), task(4, "completed", blocks=[3])):
        graph.add(each)
    reconcile(graph, AT)
    assert (graph.tasks[1].blocks, graph.tasks[2].blocked_by) == ([2, 3], [1])
    assert (graph.tasks[3].blocked_by, graph.tasks[3].unblocked_by) == ([1], [4])


def test_an_edge_to_a_missing_task_stays_and_blocks() -> None:
    graph = Graph()
    graph.add(task(1, unblockedBy=[9], blocks=[8]))
    reconcile(graph, AT)
    assert (graph.tasks[1].blocked_by, graph.tasks[1].unblocked_by, graph.tasks[1].blocks) == ([9], [], [8])


def test_an_upstream_that_stands_in_both_lists_ends_up_in_one() -> None:
    for status, lists in (("pending", ([1], [])), ("completed", ([], [1]))):
        graph = Graph()
        graph.add(task(1, status, blocks=[2]))
        graph.add(task(2, up=(1,), unblockedBy=[1]))
        reconcile(graph, AT)
        assert (graph.tasks[2].blocked_by, graph.tasks[2].unblocked_by) == lists


def test_a_hand_edit_that_repairs_the_culprit_revives_what_it_had_ended() -> None:
    graph = chain(3)
    fail(graph, 1)
    graph.tasks[1].data["status"] = "completed"
    reconcile(graph, AT)
    assert statuses(graph) == {1: "completed", 2: "pending", 3: "pending"}


def test_hand_written_cancellations_in_a_ring_with_no_culprit_are_undone() -> None:
    graph = graph_of(task(1, "cancelled", up=(2,), cause=[2]), task(2, "cancelled", up=(1,), cause=[1]))
    reconcile(graph, AT)
    assert statuses(graph) == {1: "pending", 2: "pending"}


def test_tasks_read_afresh_are_brought_into_order_with_their_neighbours() -> None:
    graph = graph_of(task(1), task(2), task(3, up=(2,)))
    graph.add(task(1, "failed", blocks=[2]))
    touched = settle_in(graph, [1], AT)
    assert statuses(graph) == {1: "failed", 2: "cancelled", 3: "cancelled"}
    assert set(touched) >= {2, 3}


# Properties, over any small graph in any state.


@st.composite
def any_graph(draw: st.DrawFn, *, acyclic: bool) -> Graph:
    size = draw(st.integers(1, 6))
    graph = Graph()
    for i in range(1, size + 1):
        others = [j for j in range(1, size + 2) if (j < i if acyclic else True)]
        pick = st.lists(st.sampled_from(others), unique=True, max_size=3) if others else st.just([])
        down = [j for j in range(1, size + 2) if (j > i if acyclic else True)]
        status = draw(st.sampled_from(STATUSES))
        values: dict[str, Any] = {"unblockedBy": draw(pick), "triggerRule": draw(st.sampled_from(TRIGGER_RULES))}
        values["blocks"] = draw(st.lists(st.sampled_from(down), unique=True, max_size=2))
        if status in ("cancelled", "skipped") and draw(st.booleans()):
            values["cause"] = draw(st.lists(st.integers(1, size), min_size=1, max_size=2, unique=True))
        graph.add(task(i, status, up=tuple(draw(pick)), **values))
    return graph


def data_of(graph: Graph) -> dict[int, dict[str, Any]]:
    return {i: dict(t.data) for i, t in graph.tasks.items()}


def knotted_cascade() -> Graph:
    """A ring below a failed task, the cause of each in the ring partly in the ring."""
    return graph_of(task(3, "failed"), task(1, up=(2, 3)), task(2, up=(1,)))


@given(any_graph(acyclic=False))
@example(knotted_cascade())
def test_reconciling_twice_changes_and_says_nothing_more(graph: Graph) -> None:
    reconcile(graph, AT)
    settle(graph)
    before = data_of(graph)
    assert reconcile(graph, "2026-05-02T08:00:00.000Z") == []
    assert graph.events == []
    assert data_of(graph) == before


@given(any_graph(acyclic=False))
def test_after_reconciling_every_edge_stands_on_both_sides_on_the_right_list(graph: Graph) -> None:
    drawn = {(u, t.id) for t in graph.tasks.values() for u in t.upstream}
    drawn |= {(t.id, d) for t in graph.tasks.values() for d in t.blocks if d in graph.tasks}
    reconcile(graph, AT)
    both = graph.tasks
    assert {(u, t.id) for t in both.values() for u in t.upstream} == drawn
    for t in both.values():
        assert len(set(t.upstream)) == len(t.upstream)
        for u in t.upstream:
            settled = u in both and both[u].status in SETTLED
            assert (u in t.unblocked_by) is settled
            assert u not in both or t.id in both[u].blocks


@st.composite
def words_of_people(draw: st.DrawFn) -> tuple[Graph, list[tuple[int, str]]]:
    size = draw(st.integers(2, 6))
    tasks = []
    for i in range(1, size + 1):
        ups = draw(st.lists(st.integers(1, i - 1), unique=True, max_size=3)) if i > 1 else []
        tasks.append(task(i, up=tuple(ups), triggerRule=draw(st.sampled_from(TRIGGER_RULES))))
    verbs = st.sampled_from(["complete", "fail", "skip", "cancel", "hold", "reopen", "release"])
    return graph_of(*tasks), draw(st.lists(st.tuples(st.integers(1, size), verbs), max_size=12))


@given(words_of_people())
def test_what_flows_step_by_step_is_what_computing_it_afresh_gives(given_: tuple[Graph, list[tuple[int, str]]]) -> None:
    from taskgraph.errors import RefusedError

    graph, words = given_
    reconcile(graph, AT)
    for task_id, verb in words:
        one = graph.tasks[task_id]
        try:
            if verb == "complete":
                moves.complete(graph, one, AT, force=True)
            elif verb == "fail":
                fail(graph, task_id)
            elif verb == "reopen":
                moves.reopen(graph, one, AT)
            elif verb == "release":
                moves.release(graph, one, AT)
            else:
                word = {"skip": "skipped", "cancel": "cancelled", "hold": "held"}[verb]
                moves.put_aside(graph, one, AT, word, "")
        except RefusedError:
            continue
        settle(graph)
        before = data_of(graph)
        assert reconcile(graph, AT) == [], (words, task_id, verb)
        assert data_of(graph) == before


def test_the_order_in_which_upstreams_end_makes_no_difference() -> None:
    def ended(order: tuple[int, ...]) -> dict[int, Any]:
        graph = graph_of(task(1), task(2), task(3), task(4, up=(1, 2, 3)), task(5, up=(4,)))
        for task_id in order:
            if task_id == 2:
                fail(graph, 2)
            elif task_id == 3:
                moves.put_aside(graph, graph.tasks[3], AT, "cancelled", "")
            else:
                moves.complete(graph, graph.tasks[1], AT)
        return {i: (t.status, t.cause, sorted(t.unblocked_by)) for i, t in graph.tasks.items()}

    orders = [(1, 2, 3), (3, 2, 1), (2, 1, 3), (2, 3, 1)]
    assert all(ended(order) == ended(orders[0]) for order in orders)


def test_mirroring_touches_nothing_that_is_in_order() -> None:
    graph = chain(3)
    mirror(graph)
    assert not graph.dirty


def test_a_task_without_a_graph_is_no_concern_of_the_flow() -> None:
    graph = graph_of(one := task(1, blocks=[7]))
    move(graph, one, "completed", "completed", AT)
    assert flow(graph, [1, 99], AT) == []
    assert isinstance(graph.tasks[1], Task)
