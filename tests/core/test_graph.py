"""The working set: edges, ways, orders and knots, also in graphs that are large."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph.core.graph import Graph, cycles, link, order, path, unlink
from taskgraph.core.task import Task
from tests.core.build import chain, graph_of, task


def lattice(layers: int, width: int) -> Graph:
    """Each task of a layer waits for every task of the one above: width^layers ways, but few edges."""
    tasks = [
        task(row * width + column + 1, up=tuple((row - 1) * width + c + 1 for c in range(width)) if row else ())
        for row in range(layers)
        for column in range(width)
    ]
    return graph_of(*tasks)


def test_a_link_stands_on_both_sides_once() -> None:
    up, down = task(1), task(2)
    for _ in range(2):
        link(up, down, settled=False)
    assert (up.blocks, down.blocked_by, down.unblocked_by) == ([2], [1], [])


def test_a_link_from_a_settled_task_blocks_nothing() -> None:
    up, down = task(1, "completed"), task(2)
    link(up, down, settled=True)
    assert (up.blocks, down.blocked_by, down.unblocked_by) == ([2], [], [1])


@pytest.mark.parametrize("listed", ["blockedBy", "unblockedBy"])
def test_unlinking_takes_every_trace_away(listed: str) -> None:
    up, down = task(1, blocks=[2, 3]), task(2, **{"blockedBy": [], listed: [1]})
    assert unlink(1, up, 2, down)
    assert (up.blocks, down.upstream) == ([3], [])
    assert not unlink(1, up, 2, down)


def test_unlinking_from_a_missing_task_takes_away_the_side_that_is_there() -> None:
    assert unlink(9, None, 2, down := task(2, up=(9,)))
    assert down.upstream == []
    assert unlink(1, up := task(1, blocks=[9]), 9, None)
    assert up.blocks == []


def test_a_way_is_a_shortest_one() -> None:
    graph = graph_of(task(1), task(2, up=(1,)), task(3, up=(2, 1)), task(4, up=(3,)))
    assert path(graph, 1, 4) == [1, 3, 4]
    assert path(graph, 4, 1) is None
    assert path(graph, 2, 2) == [2]


def test_a_way_through_twenty_layers_with_billions_of_ways_is_found_at_once() -> None:
    graph = lattice(20, 5)
    way = path(graph, 1, 100)
    assert way is not None
    assert len(way) == 20
    assert path(graph, 100, 1) is None
    ordered, knotted = order(graph)
    assert (len(ordered), knotted) == (100, [])
    assert len(graph.closure([1], down=True)) == 96


def test_a_long_chain_needs_no_recursion() -> None:
    graph = chain(5000)
    assert path(graph, 1, 5000) == list(range(1, 5001))
    assert order(graph) == (list(range(1, 5001)), [])
    assert graph.closure([5000], down=False) == list(range(5000, 0, -1))


@pytest.mark.parametrize(
    ("tasks", "rings"),
    [
        ([task(1), task(2, up=(1,))], []),
        ([task(1, up=(1,))], [[1, 1]]),
        ([task(1, up=(3,)), task(2, up=(1,)), task(3, up=(2,))], [[1, 2, 3, 1]]),
        ([task(1, up=(2,)), task(2, up=(1,)), task(3, up=(4,)), task(4, up=(3,))], [[1, 2, 1], [3, 4, 3]]),
        ([task(1, up=(2,)), task(2, up=(1,)), task(3, up=(2,))], [[1, 2, 1]]),
        ([task(1), task(2, up=(1, 3)), task(3, up=(2,))], [[2, 3, 2]]),
    ],
)
def test_each_knot_is_named_by_one_ring(tasks: list[Task], rings: list[list[int]]) -> None:
    assert cycles(graph_of(*tasks)) == rings


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), max_size=20))
def test_order_and_cycles_agree_on_any_graph(edges: list[tuple[int, int]]) -> None:
    graph = graph_of(*(task(i, up=tuple({u for u, d in edges if d == i})) for i in range(1, 9)))
    ordered, knotted = order(graph)
    assert sorted(ordered + knotted) == list(range(1, 9))
    place = {i: n for n, i in enumerate(ordered)}
    assert all(place[u] < place[d] for u, d in edges if u in place and d in place)
    assert bool(cycles(graph)) == bool(knotted)
    for ring in cycles(graph):
        assert ring[0] == ring[-1]
        assert all((u, d) in edges for u, d in pairwise(ring))


def test_a_lazy_graph_fetches_each_task_once_and_remembers_what_is_missing() -> None:
    asked = []

    def fetch(task_id: int) -> Task | None:
        asked.append(task_id)
        return task(task_id) if task_id < 3 else None

    graph = Graph(fetch)
    assert [graph.get(i) is not None for i in (1, 1, 3, 3, 2)] == [True, True, False, False, True]
    assert asked == [1, 3, 2]


def test_a_change_is_noted_where_the_task_is_kept_and_an_event_stamps_it() -> None:
    graph = graph_of(one := task(1), task(2))
    graph.record("noted", one, "2026-05-01T08:00:00Z", why="x")
    assert [t.id for t in graph.changed()] == [1]
    assert one.updated_at == "2026-05-01T08:00:00Z"
    assert graph.events == [{"at": "2026-05-01T08:00:00Z", "event": "noted", "task": 1, "why": "x"}]
    graph.drop(1)
    assert graph.changed() == []
    assert graph.get(1) is None
