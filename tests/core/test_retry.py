"""What follows an attempt: tables of outcomes, delays and exit codes."""

from __future__ import annotations

from typing import Any

import pytest

from taskgraph.core.retry import Decision, decide, delay_before, describe, deserves_retry, used
from tests.core.build import limits


def tries(*outcomes: str, **last: Any) -> list[Any]:
    made = [{"number": n, "visit": 1, "outcome": outcome} for n, outcome in enumerate(outcomes, 1)]
    made[-1].update(last)
    return made


@pytest.mark.parametrize("outcome", ["failed", "timeout", "stalled", "lost"])
@pytest.mark.parametrize(
    ("before", "retries", "action"), [(0, 0, "fail"), (0, 1, "retry"), (1, 1, "fail"), (2, 3, "retry")]
)
def test_each_kind_of_failure_uses_up_one_retry(outcome: str, before: int, retries: int, action: str) -> None:
    attempts = tries(*["failed"] * before, outcome)
    assert decide(attempts, limits(maxRetries=retries)).action == action


@pytest.mark.parametrize("outcome", ["interrupted", "superseded"])
def test_an_interrupted_attempt_costs_nothing_and_gives_the_task_back(outcome: str) -> None:
    assert decide(tries(outcome), limits()).action == "release"
    assert used(tries("interrupted", "superseded", "completed", "failed")) == 1
    assert decide(tries(outcome, outcome, "failed"), limits(maxRetries=1)).action == "retry"


def test_a_completed_attempt_completes_the_task_after_any_number_of_failures() -> None:
    assert decide(tries("failed", "failed", "completed"), limits()) == Decision("complete")


@pytest.mark.parametrize("action", ["fail", "skip", "hold", "stop"])
def test_when_no_retry_is_left_on_failure_says_what_is_done(action: str) -> None:
    decision = decide(tries("failed", exitCode=3), limits(onFailure=action))
    assert (decision.action, decision.reason, decision.delay) == (action, "exit 3", 0)


@pytest.mark.parametrize(
    ("fields", "failures", "seconds"),
    [
        ({}, 1, 0),
        ({"retryDelay": 2}, 1, 2),
        ({"retryDelay": 2}, 3, 2),
        ({"retryDelay": 2, "backoff": 3}, 1, 2),
        ({"retryDelay": 2, "backoff": 3}, 2, 6),
        ({"retryDelay": 2, "backoff": 3}, 3, 18),
        ({"retryDelay": 2, "backoff": 3, "maxRetryDelay": 10}, 3, 10),
        ({"retryDelay": 0.5, "backoff": 1.5}, 2, 0.75),
        ({"retryDelay": 2, "backoff": 2, "maxRetryDelay": 60}, 5000, 60),
        ({"retryDelay": 2.5, "backoff": 2, "maxRetryDelay": 60}, 5000, 60),
        ({"retryDelay": 2, "backoff": 1e300, "maxRetryDelay": 60}, 50, 60),
    ],
)
def test_delays_grow_by_the_factor_and_are_bounded(fields: dict[str, Any], failures: int, seconds: float) -> None:
    assert delay_before(limits(**fields), failures) == pytest.approx(seconds)


def test_an_unbounded_backoff_stays_a_time_that_can_be_written_down() -> None:
    assert delay_before(limits(retryDelay=1, backoff=10), 4000) <= 10 * 366 * 86400


def test_the_delay_counts_only_failures_of_this_visit_that_cost_something() -> None:
    decision = decide(
        tries("interrupted", "failed", "interrupted", "failed"), limits(maxRetries=5, retryDelay=1, backoff=10)
    )
    assert decision == Decision("retry", 10, "failed")


@pytest.mark.parametrize(
    ("last", "codes", "worth"),
    [
        ({"outcome": "failed", "exitCode": 1}, [], True),
        ({"outcome": "failed", "signal": "SIGKILL"}, [], True),
        ({"outcome": "failed"}, [], True),
        ({"outcome": "failed", "exitCode": 127}, [], False),
        ({"outcome": "failed", "exitCode": 126}, [], False),
        ({"outcome": "failed", "exitCode": 75}, [75, 111], True),
        ({"outcome": "failed", "exitCode": 1}, [75, 111], False),
        ({"outcome": "failed", "exitCode": 127}, [127], True),
        ({"outcome": "failed", "signal": "SIGSEGV"}, [75], False),
        ({"outcome": "stalled"}, [75], True),
        ({"outcome": "timeout", "exitCode": 127}, [], True),
        ({"outcome": "lost"}, [75], True),
    ],
)
def test_which_failures_deserve_a_retry(last: Any, codes: list[int], worth: bool) -> None:
    fields = {"retryExitCodes": codes} if codes else {}
    assert deserves_retry(last, limits(maxRetries=1, **fields)) is worth


@pytest.mark.parametrize(
    ("outcome", "fields", "action"),
    [
        ("stalled", {}, "release"),
        ("lost", {}, "release"),
        ("stalled", {"maxRetries": 0}, "fail"),
        ("stalled", {"maxRetries": 1}, "retry"),
        ("failed", {}, "fail"),
        ("failed", {"maxRetries": 1}, "retry"),
    ],
)
def test_a_claim_that_lapses_gives_the_task_back_unless_retries_are_limited(
    outcome: str, fields: dict[str, Any], action: str
) -> None:
    assert decide(tries(outcome), limits(**fields), claimed=True).action == action


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ({"outcome": "failed", "exitCode": 3}, "exit 3"),
        ({"outcome": "failed", "exitCode": 0, "error": "the result is no JSON"}, "the result is no JSON"),
        ({"outcome": "failed", "exitCode": 127}, "command not found (exit 127)"),
        ({"outcome": "failed", "exitCode": 126}, "command not executable (exit 126)"),
        ({"outcome": "failed", "signal": "SIGKILL"}, "was ended by SIGKILL"),
        ({"outcome": "timeout", "signal": "SIGTERM"}, "ran out of time"),
        ({"outcome": "stalled", "signal": "SIGTERM"}, "gave no sign of life"),
        ({"outcome": "lost"}, "vanished without a record"),
        ({"outcome": "interrupted"}, "was interrupted"),
        ({"outcome": "superseded"}, "was superseded"),
        ({"outcome": "failed"}, "failed"),
    ],
)
def test_how_an_attempt_ended_in_words(last: Any, words: str) -> None:
    assert describe(last) == words
