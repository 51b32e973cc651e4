"""Making, describing, linking and deleting: what is refused changes nothing, what closes a cycle names its way."""

from __future__ import annotations

import time
from typing import Any

import pytest

from taskgraph.core import edit, moves
from taskgraph.core.edit import Edges
from taskgraph.core.graph import Graph
from taskgraph.core.task import Task
from taskgraph.errors import CycleError, NotFoundError, RefusedError, StoreError, UsageError
from tests.core.build import AT, chain, graph_of, limits, statuses, task
from tests.core.test_flow import data_of
from tests.core.test_graph import lattice


def update(graph: Graph, task_id: int, *, unset: tuple[str, ...] = (), edges: Edges = Edges(), **values: Any) -> None:  # noqa: B008
    edit.update(graph, graph.tasks[task_id], edit.by_json_name(values), unset, edges, AT)


def create(graph: Graph, edges: Edges = Edges(), **values: Any) -> Task:  # noqa: B008
    return edit.create(graph, lambda: max(graph.tasks, default=0) + 1, {"subject": "new", **values}, edges, AT)


@pytest.mark.parametrize("ref", [3, "3", "#3", " 3 ", "hotel"])
def test_a_task_is_named_by_its_id_or_its_name(ref: edit.Ref) -> None:
    graph = graph_of(task(3, name="hotel"))
    assert edit.resolve(graph, ref).id == 3


def test_what_is_not_there_is_told_apart_from_what_cannot_be_read() -> None:
    graph = graph_of(task(1))
    graph.faults[2] = StoreError("task_2.json", "the file is empty")
    with pytest.raises(NotFoundError, match="there is no task 7"):
        edit.resolve(graph, "#7")
    with pytest.raises(NotFoundError, match="there is no task hotel"):
        edit.resolve(graph, "hotel")
    with pytest.raises(StoreError, match="the file is empty"):
        edit.resolve(graph, 2)


def test_an_edge_stands_on_both_sides_on_the_list_that_the_upstreams_status_says() -> None:
    graph = graph_of(task(1), task(2, "completed"), task(3))
    update(graph, 3, edges=Edges(add_blocked_by=(1, "2")))
    assert (graph.tasks[1].blocks, graph.tasks[2].blocks) == ([3], [3])
    assert (graph.tasks[3].blocked_by, graph.tasks[3].unblocked_by) == ([1], [2])
    update(graph, 3, edges=Edges(remove_blocked_by=(1, 2)))
    assert (graph.tasks[1].blocks, graph.tasks[2].blocks, graph.tasks[3].upstream) == ([], [], [])


def test_the_other_direction_draws_the_same_edge() -> None:
    graph = graph_of(task(1), task(2))
    update(graph, 1, edges=Edges(add_blocks=(2,)))
    assert (graph.tasks[1].blocks, graph.tasks[2].blocked_by) == ([2], [1])
    update(graph, 1, edges=Edges(remove_blocks=(2,)))
    assert (graph.tasks[1].blocks, graph.tasks[2].blocked_by) == ([], [])


def test_a_doubled_link_stays_one() -> None:
    graph = chain(2)
    update(graph, 2, edges=Edges(add_blocked_by=(1, "#1")))
    update(graph, 1, edges=Edges(add_blocks=(2,)))
    assert (graph.tasks[1].blocks, graph.tasks[2].blocked_by) == ([2], [1])


@pytest.mark.parametrize(
    ("at", "edges", "cycle"),
    [
        (1, Edges(add_blocked_by=(3,)), [1, 2, 3, 1]),
        (3, Edges(add_blocks=(1,)), [1, 2, 3, 1]),
        (1, Edges(add_blocked_by=(2,)), [1, 2, 1]),
        (2, Edges(add_blocked_by=(2,)), [2, 2]),
        (2, Edges(add_blocks=("#2",)), [2, 2]),
    ],
)
def test_a_closing_edge_is_refused_with_its_way_named(at: int, edges: Edges, cycle: list[int]) -> None:
    graph = chain(3)
    before = data_of(graph)
    with pytest.raises(CycleError) as caught:
        update(graph, at, edges=edges)
    assert caught.value.details["cycle"] == cycle
    assert " → ".join(map(str, cycle)) in caught.value.message
    assert data_of(graph) == before


def test_a_new_task_between_two_that_are_the_wrong_way_round_is_refused() -> None:
    graph = chain(3)
    with pytest.raises(CycleError) as caught:
        create(graph, Edges(add_blocked_by=(3,), add_blocks=(1,)))
    assert caught.value.details["cycle"] == [1, 2, 3, "the new task", 1]
    assert sorted(graph.tasks) == [1, 2, 3]


def test_a_very_long_way_is_shortened_in_the_sentence_and_whole_in_the_details() -> None:
    graph = chain(5000)
    with pytest.raises(CycleError) as caught:
        update(graph, 1, edges=Edges(add_blocked_by=(5000,)))
    assert len(caught.value.details["cycle"]) == 5001  # type: ignore[arg-type]
    assert "1 → 2 → 3" in caught.value.message
    assert "more" in caught.value.message
    assert len(caught.value.message) < 200


def test_a_diamond_is_no_cycle() -> None:
    graph = graph_of(task(1), task(2, up=(1,)), task(3, up=(1,)), task(4, up=(2, 3)))
    update(graph, 4, edges=Edges(add_blocked_by=(1,)))
    assert sorted(graph.tasks[4].blocked_by) == [1, 2, 3]


def test_a_lattice_of_twenty_layers_is_judged_at_once() -> None:
    graph = lattice(20, 10)
    began = time.perf_counter()
    with pytest.raises(CycleError) as caught:
        update(graph, 1, edges=Edges(add_blocked_by=(200,)))
    create(graph, Edges(add_blocked_by=(200,)))
    assert time.perf_counter() - began < 1
    assert len(caught.value.details["cycle"]) == 21  # type: ignore[arg-type]


def test_taking_away_an_edge_that_is_not_there_is_refused() -> None:
    graph = graph_of(task(1), task(2))
    with pytest.raises(NotFoundError, match="task 2 is not blocked by 1"):
        update(graph, 2, edges=Edges(remove_blocked_by=(1,)))
    with pytest.raises(NotFoundError, match="task 2 does not block 1"):
        update(graph, 2, edges=Edges(remove_blocks=(1,)))


def test_an_edge_to_a_task_that_was_never_there_can_be_taken_away() -> None:
    graph = graph_of(task(2, up=(9,), blocks=[8]))
    update(graph, 2, edges=Edges(remove_blocked_by=(9,), remove_blocks=(8,)))
    assert (graph.tasks[2].upstream, graph.tasks[2].blocks) == ([], [])


def test_edges_that_come_and_go_end_and_revive_what_they_reach() -> None:
    graph = graph_of(task(1, "failed"), task(2), task(3, up=(2,)))
    update(graph, 2, edges=Edges(add_blocked_by=(1,)))
    assert statuses(graph) == {1: "failed", 2: "cancelled", 3: "cancelled"}
    update(graph, 1, edges=Edges(remove_blocks=(2,)))
    assert statuses(graph) == {1: "failed", 2: "pending", 3: "pending"}


def test_a_new_task_below_a_failed_one_is_ended_and_one_below_a_finished_one_is_not() -> None:
    graph = graph_of(task(1, "failed"), task(2, "completed"))
    assert create(graph, Edges(add_blocked_by=(1,))).status == "cancelled"
    assert create(graph, Edges(add_blocked_by=(2,))).unblocked_by == [2]


def test_a_refused_creation_uses_up_no_id() -> None:
    graph = graph_of(task(1))

    def no_id() -> int:
        raise AssertionError("an id was asked for")

    for values, edges in (({"maxRetries": -1}, Edges()), ({}, Edges(add_blocked_by=(9,))), ({"name": "7"}, Edges())):
        with pytest.raises((UsageError, NotFoundError)):
            edit.create(graph, no_id, {"subject": "x", **values}, edges, AT)
    assert list(graph.tasks) == [1]
    assert graph.events == []


def test_an_event_says_what_was_set() -> None:
    graph = chain(1)
    create(graph, Edges(add_blocked_by=(1,)), priority=3)
    update(graph, 2, priority=0, unset=("owner",), subject="other")
    created, updated = graph.events
    assert (created["event"], created["subject"], created["priority"], created["addBlockedBy"]) == (
        "created",
        "new",
        3,
        [1],
    )
    assert (updated["event"], updated["priority"], updated["subject"]) == ("updated", 0, "other")


@pytest.mark.parametrize("key", ["id", "status", "blockedBy", "blocks", "unblockedBy", "attempts", "visits", "cause"])
def test_what_has_a_verb_of_its_own_is_neither_set_nor_taken_out(key: str) -> None:
    graph = chain(2)
    with pytest.raises(UsageError, match=key):
        update(graph, 2, **{key: 1})
    before = data_of(graph)
    with pytest.raises(UsageError, match=key):
        update(graph, 2, unset=(key,))
    assert data_of(graph) == before


def test_fields_are_named_in_either_spelling_and_unknown_ones_are_refused() -> None:
    assert edit.by_json_name({"max_retries": 1, "stallTimeout": 2, "owner": None}) == {
        "maxRetries": 1,
        "stallTimeout": 2,
    }
    with pytest.raises(UsageError, match="no field 'colour'"):
        edit.by_json_name({"colour": "red"})


def test_a_name_belongs_to_one_task() -> None:
    graph = graph_of(task(1, name="hotel"), task(2))
    with pytest.raises(RefusedError, match="task 1 has the name 'hotel' already"):
        update(graph, 2, name="hotel")
    update(graph, 1, name="hotel")
    assert graph.tasks[2].name == ""


def test_deleting_what_others_depend_on_is_refused_naming_them() -> None:
    graph = chain(3)
    with pytest.raises(RefusedError, match="task 2 depends on task 1") as caught:
        edit.delete(graph, [1], AT, force=False, cascade=False)
    assert caught.value.details["blocks"] == [2]
    assert sorted(graph.tasks) == [1, 2, 3]


def test_force_unlinks_and_cascade_takes_all_below() -> None:
    graph = chain(4)
    assert edit.delete(graph, [2], AT, force=True, cascade=False) == [2]
    assert (graph.tasks[1].blocks, graph.tasks[3].blocked_by) == ([], [])
    assert edit.delete(graph, [3], AT, force=False, cascade=True) == [3, 4]
    assert sorted(graph.tasks) == [1]


def test_tasks_that_depend_only_on_each_other_go_together() -> None:
    graph = chain(2)
    assert edit.delete(graph, [2, 1, 2], AT, force=False, cascade=False) == [2, 1]


def test_deleting_the_culprit_revives_what_it_had_ended() -> None:
    graph = chain(3)
    moves.fail(graph, graph.tasks[1], AT, limits(), "")
    edit.delete(graph, [1], AT, force=True, cascade=False)
    assert statuses(graph) == {2: "pending", 3: "pending"}


@pytest.mark.parametrize("flags", [{"force": True, "cascade": False}, {"force": False, "cascade": True}])
def test_what_is_in_progress_is_never_deleted(flags: dict[str, bool]) -> None:
    graph = graph_of(task(1), task(2, "in_progress", up=(1,)))
    before = data_of(graph)
    with pytest.raises(RefusedError, match="task 2 is in progress"):
        edit.delete(graph, [1, 2], AT, **flags)
    assert data_of(graph) == before
