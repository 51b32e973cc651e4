"""What each upstream says, what each trigger rule makes of it, and whether a task is ready."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from taskgraph.core import rules as r
from taskgraph.core.fields import TRIGGER_RULES, format_time
from taskgraph.core.task import Task
from tests.core.build import AT, NOW, graph_of, task

W, S, F, P, D = r.WAITING, r.SUCCESS, r.FAILURE, r.PASSED_OVER, r.DISMISSED
MET, UNREACHABLE = r.MET, r.UNREACHABLE


@pytest.mark.parametrize(
    ("up", "said"),
    [
        (None, W),
        (task(1), W),
        (task(1, "in_progress"), W),
        (task(1, "held"), W),
        (task(1, "completed"), S),
        (task(1, "failed"), F),
        (task(1, "skipped"), S),
        (task(1, "skipped", waived=True), S),
        (task(1, "skipped", cause=[9]), P),
        (task(1, "skipped", cause=[9], waived=True), S),
        (task(1, "cancelled", cause=[9]), F),
        (task(1, "cancelled"), D),
    ],
)
def test_what_an_edge_says(up: Task | None, said: str) -> None:
    assert r.outcome(up) == said


@pytest.mark.parametrize(
    ("rule", "edges", "verdict"),
    [
        ("all_success", [], MET),
        ("all_success", [S, S], MET),
        ("all_success", [S, W], W),
        ("all_success", [F, W], UNREACHABLE),
        ("all_success", [P, S], UNREACHABLE),
        ("all_success", [D, S], UNREACHABLE),
        ("all_done", [], MET),
        ("all_done", [S, F, P, D], MET),
        ("all_done", [F, W], W),
        ("none_failed", [], MET),
        ("none_failed", [S, P, D], MET),
        ("none_failed", [P, P], MET),
        ("none_failed", [S, W], W),
        ("none_failed", [F, W], UNREACHABLE),
        ("none_failed_min_one_success", [], MET),
        ("none_failed_min_one_success", [S, P], MET),
        ("none_failed_min_one_success", [S, P, W], W),
        ("none_failed_min_one_success", [P, W], W),
        ("none_failed_min_one_success", [P, P], UNREACHABLE),
        ("none_failed_min_one_success", [P, D], UNREACHABLE),
        ("none_failed_min_one_success", [S, F], UNREACHABLE),
        ("none_failed_min_one_success", [F, W], UNREACHABLE),
        ("one_success", [], MET),
        ("one_success", [S, W], MET),
        ("one_success", [S, F], MET),
        ("one_success", [F, W], W),
        ("one_success", [F, P, D], UNREACHABLE),
        ("one_failed", [], MET),
        ("one_failed", [F, W], MET),
        ("one_failed", [F, S], MET),
        ("one_failed", [S, W], W),
        ("one_failed", [S, P, D], UNREACHABLE),
    ],
)
def test_what_a_trigger_rule_makes_of_the_edges(rule: str, edges: list[str], verdict: str) -> None:
    assert r.verdict(rule, edges) == verdict


@pytest.mark.parametrize("rule", TRIGGER_RULES)
def test_a_verdict_that_is_reached_stays_whatever_the_waiting_upstreams_turn_out_to_be(rule: str) -> None:
    for edges in combinations_with_replacement((W, S, F, P, D), 3):
        before = r.verdict(rule, edges)
        if before == W:
            assert W in edges
            continue
        for instead in (S, F, P, D):
            after = [instead if edge == W else edge for edge in edges]
            assert r.verdict(rule, after) == before, (rule, edges, after)


@pytest.mark.parametrize("rule", TRIGGER_RULES)
def test_nothing_waits_once_all_upstreams_have_settled(rule: str) -> None:
    for edges in combinations_with_replacement((S, F, P, D), 3):
        assert r.verdict(rule, edges) != W


@pytest.mark.parametrize(
    ("ups", "rule", "status", "cause"),
    [
        ([task(1, "failed"), task(2, "completed")], "all_success", "cancelled", [1]),
        ([task(1, "cancelled"), task(2, "failed")], "all_success", "cancelled", [1, 2]),
        ([task(1, "cancelled", cause=[8])], "all_success", "cancelled", [1]),
        ([task(1, "skipped", cause=[8]), task(2, "completed")], "all_success", "skipped", [1]),
        ([task(1, "skipped", cause=[8]), task(2, "failed")], "all_success", "cancelled", [2]),
        ([task(1, "completed"), task(2, "completed")], "one_failed", "skipped", [1, 2]),
        ([task(1, "skipped", cause=[8]), task(2, "skipped", cause=[8])], "one_success", "skipped", [1, 2]),
    ],
)
def test_how_an_unreachable_task_ends(ups: list[Task], rule: str, status: str, cause: list[int]) -> None:
    graph = graph_of(*ups, down := task(5, up=tuple(up.id for up in ups), triggerRule=rule))
    assert r.judge(graph, down) == UNREACHABLE
    assert r.ending(r.outcomes_of(graph, down)) == (status, cause)


def test_readiness_names_what_is_waited_for_and_what_is_missing() -> None:
    graph = graph_of(task(1, "completed"), task(2), task(3, "held"), one := task(4, up=(1, 2, 3, 9)))
    ready = r.readiness(graph, one, NOW)
    assert (ready.state, sorted(ready.waits_for), ready.missing) == ("blocked", [2, 3, 9], (9,))


@pytest.mark.parametrize("status", ["in_progress", "completed", "failed", "skipped", "cancelled", "held"])
def test_what_is_not_pending_is_neither_ready_nor_blocked(status: str) -> None:
    graph = graph_of(task(1), one := task(2, status, up=(1,)))
    assert r.readiness(graph, one, NOW) == r.Readiness(status)


def test_an_early_trigger_rule_is_ready_while_others_still_wait() -> None:
    graph = graph_of(task(1, "failed"), task(2), one := task(3, up=(1, 2), triggerRule="one_failed"))
    assert r.readiness(graph, one, NOW).state == "ready"
    assert one.blocked_by == [2]


@pytest.mark.parametrize("listed", ["blockedBy", "unblockedBy"])
@pytest.mark.parametrize(
    ("up", "state"), [("pending", "blocked"), ("completed", "ready"), ("failed", "blocked"), ("skipped", "ready")]
)
def test_readiness_asks_the_status_of_the_upstream_whichever_list_a_hand_edit_left_it_in(
    listed: str, up: str, state: str
) -> None:
    graph = graph_of()
    graph.add(task(1, up, blocks=[2]))
    graph.add(one := task(2, **{"blockedBy": [], listed: [1]}))
    ready = r.readiness(graph, one, NOW)
    assert ready.state == state
    assert ready.waits_for == ((1,) if state == "blocked" else ())


def delayed(ahead: float, planned: float) -> Task:
    return task(
        1,
        notBefore=format_time(NOW + ahead),
        attempts=[{"number": 1, "outcome": "failed", "startedAt": AT, "retryIn": planned}],
    )


@pytest.mark.parametrize(
    ("ahead", "planned", "seconds"),
    [(5, 5, 5), (2, 5, 2), (0, 5, None), (-3, 5, None), (86400, 5, 5), (5, 0, None)],
    ids=["just begun", "half-way", "over", "long over", "the clock was set back", "no retry was planned"],
)
def test_a_retry_never_waits_longer_than_its_planned_delay(ahead: float, planned: float, seconds: float | None) -> None:
    graph = graph_of(one := delayed(ahead, planned))
    ready = r.readiness(graph, one, NOW)
    assert (ready.state, ready.seconds or None) == (("delayed", seconds) if seconds else ("ready", None))


def test_not_before_without_any_attempt_delays_nothing() -> None:
    graph = graph_of(one := task(1, notBefore="2099-01-01T00:00:00Z"))
    assert r.readiness(graph, one, NOW).state == "ready"


def tried(outcome: str, **values: object) -> Task:
    attempts = [
        {"number": 1, "visit": 1, "outcome": outcome},
        {"number": 2, "visit": 1, "outcome": "completed"},
    ]
    return task(1, "completed", attempts=attempts, **values)


@pytest.mark.parametrize(
    ("one", "state"),
    [
        (tried("stalled"), "recovered"),
        (tried("failed"), "recovered"),
        (tried("timeout"), "recovered"),
        (tried("lost"), "recovered"),
        (tried("interrupted"), "completed"),
        (tried("stalled", visits=2), "completed"),
        (task(1), "ready"),
        (task(1, "in_progress"), "in_progress"),
        (task(1, "held"), "held"),
        (delayed(3, 3), "delayed"),
        (task(1, up=(9,)), "blocked"),
    ],
)
def test_the_derived_state(one: Task, state: str) -> None:
    assert r.state(graph_of(one), one, NOW) == state


def test_only_work_in_progress_can_be_stalled() -> None:
    graph = graph_of(running := task(1, "in_progress"), waiting := task(2))
    assert r.state(graph, running, NOW, silent=True) == "stalled"
    assert r.state(graph, waiting, NOW, silent=True) == "ready"
