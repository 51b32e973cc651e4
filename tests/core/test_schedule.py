"""What starts next, and when something held back is due: with clocks as arguments."""

from __future__ import annotations

from taskgraph.core import moves
from taskgraph.core.fields import format_time
from taskgraph.core.graph import Graph
from taskgraph.core.schedule import Frontier, plan
from taskgraph.core.task import Task
from tests.core.build import AT, NOW, graph_of, limits, task


def work(task_id: int, up: tuple[int, ...] = (), status: str = "pending", **values: object) -> Task:
    return task(task_id, status, up=up, command="true", **values)


def frontier(graph: Graph, scope: set[int] | None = None) -> Frontier:
    made = Frontier(graph, scope)
    made.offer(graph.tasks, NOW, 0.0)
    return made


def all_of(made: Frontier) -> list[int]:
    found = []
    while (task_id := made.pop()) is not None:
        found.append(task_id)
    return found


def late(task_id: int, seconds: float) -> Task:
    attempts = [{"number": 1, "outcome": "failed", "retryIn": seconds}]
    return work(task_id, attempts=attempts, notBefore=format_time(NOW + seconds))


def test_higher_priority_first_then_the_lower_id() -> None:
    assert all_of(frontier(graph_of(work(1), work(2, priority=5), work(3), work(4, priority=-1)))) == [2, 1, 3, 4]


def test_only_what_is_pending_ready_and_has_a_command_is_offered() -> None:
    graph = graph_of(
        work(1), work(2, up=(1,)), work(3, status="held"), work(4, status="completed"), task(5), work(6, up=(9,)),
        work(7, up=(4,)), work(8, status="in_progress"),
    )  # fmt: skip
    assert all_of(frontier(graph)) == [1, 7]


def test_a_scope_keeps_other_tasks_out() -> None:
    assert all_of(frontier(graph_of(work(1), work(2), work(3)), {2, 3})) == [2, 3]


def test_a_task_comes_once_however_often_it_is_offered() -> None:
    made = frontier(graph_of(work(1)))
    made.offer([1, 1], NOW, 0.0)
    assert all_of(made) == [1]
    made.offer([1], NOW, 0.0)
    assert all_of(made) == [1]


def test_what_changed_since_it_was_queued_is_passed_over() -> None:
    graph = graph_of(work(1), work(2), work(3))
    made = frontier(graph)
    moves.put_aside(graph, graph.tasks[1], AT, "held", "")
    graph.drop(2)
    assert made.ready
    assert all_of(made) == [3]


def test_a_completion_brings_its_dependents() -> None:
    graph = graph_of(work(1), work(2, up=(1,)), work(3, up=(1, 2)))
    made = frontier(graph)
    assert all_of(made) == [1]
    graph.touched.clear()
    moves.complete(graph, graph.tasks[1], AT)
    made.offer(graph.touched, NOW, 0.0)
    assert all_of(made) == [2]


def test_a_retry_comes_when_its_delay_is_over_by_the_monotonic_clock() -> None:
    made = frontier(graph_of(late(1, 5)))
    assert (all_of(made), made.next_due()) == ([], 5.0)
    made.due(NOW + 4.9, 4.9)
    assert not made.ready
    made.due(NOW + 5, 5.0)
    assert all_of(made) == [1]
    assert made.next_due() == float("inf")


def test_a_wall_clock_that_was_set_back_holds_no_retry_up() -> None:
    made = frontier(graph_of(late(1, 5)))
    made.due(NOW - 86400, 5.1)
    assert all_of(made) == [1]


def test_a_task_offered_twice_while_delayed_does_not_cut_its_next_delay_short() -> None:
    graph = graph_of(late(1, 5))
    made = frontier(graph)
    made.offer([1], NOW - 3, 1.0)  # the wall clock stepped back, so this one is due later
    made.due(NOW + 5, 5.0)
    assert all_of(made) == [1]
    graph.add(late(1, 60))
    made.offer([1], NOW, 5.5)
    made.due(NOW + 8, 9.0)
    assert all_of(made) == []
    assert made.next_due() == 65.5


def test_a_delay_is_forgotten_with_its_task() -> None:
    graph = graph_of(late(1, 5), late(2, 7))
    made = frontier(graph)
    moves.put_aside(graph, graph.tasks[1], AT, "cancelled", "")
    assert made.next_due() == 7.0


def test_a_ready_task_can_be_looked_at_again_later() -> None:
    made = frontier(graph_of(work(1)))
    assert made.pop() == 1
    made.offer_later(1, 3.0)
    made.due(NOW, 2.0)
    assert made.pop() is None
    made.due(NOW, 3.0)
    assert made.pop() == 1


def test_a_plan_lists_what_would_start_were_everything_to_succeed() -> None:
    graph = graph_of(
        work(1), work(2, up=(1,), priority=9), work(3, up=(1,)), task(4), work(5, up=(4,)), work(6, up=(2, 3))
    )
    assert plan(graph, None) == [1, 2, 3, 6]
    assert plan(graph, {1, 3}) == [1, 3]


def test_a_plan_leaves_out_what_has_ended_and_what_lies_in_a_ring() -> None:
    graph = graph_of(work(1, status="completed"), work(2, up=(1,)), work(3, up=(4,)), work(4, up=(3,)))
    moves.fail(graph, graph.tasks[2], AT, limits(), "")
    assert plan(graph, None) == []
