"""The stall watch: only time that its observer watched by its own clock counts."""

from __future__ import annotations

import pytest

from taskgraph.core.stall import Watch


def watched(
    *looks: tuple[float, float, float], timeout: float = 0, stall_timeout: float = 0, age: float = 0.0
) -> Watch:
    """A watch begun at 0 that looked at (now, planned wait, sign of life)."""
    watch = Watch(0.0, timeout, stall_timeout, age)
    for now, planned, sign in looks:
        watch.look(now, planned, sign)
    return watch


def test_silence_grows_while_the_sign_stays_and_starts_afresh_when_it_changes() -> None:
    watch = watched((1, 1, 50), (2, 1, 50), (3, 1, 50), stall_timeout=5)
    assert watch.silence == 2
    watch.look(4, 1, 51)
    assert (watch.silence, watch.verdict) == (0, "")


def test_work_seen_for_the_first_time_gets_a_full_limit() -> None:
    watch = watched((100, 200, 50), stall_timeout=5)
    assert (watch.silence, watch.verdict, watch.left) == (0, "", 5)


def test_silence_up_to_the_limit_is_a_stall() -> None:
    looks = [(float(n), 1.0, 50.0) for n in range(1, 7)]
    assert watched(*looks[:-1], stall_timeout=5).verdict == ""
    assert watched(*looks, stall_timeout=5).verdict == "stalled"


def test_a_suspended_laptop_counts_as_the_planned_wait() -> None:
    watch = watched((1, 1, 50), (10_000, 1, 50), timeout=60, stall_timeout=5)
    assert watch.silence == 1
    assert watch.age == 2
    assert watch.verdict == ""


def test_real_silence_after_the_pause_is_still_caught() -> None:
    watch = watched((1, 1, 50), (10_000, 1, 50), *((10_000.0 + n, 1.0, 50.0) for n in range(1, 5)), stall_timeout=5)
    assert watch.verdict == "stalled"


def test_a_look_that_is_a_little_late_counts_in_full() -> None:
    assert watched((1, 1, 50), (2.9, 1, 50), stall_timeout=9).silence == pytest.approx(1.9)


def test_a_clock_that_steps_back_takes_nothing_away_and_adds_nothing() -> None:
    watch = watched((5, 5, 50), (6, 1, 50), (2, 1, 50), (3, 1, 50), stall_timeout=9)
    assert watch.silence == 2


@pytest.mark.parametrize("sign", [-1e9, 49.0, 1e12], ids=["long ago", "earlier", "far in the future"])
def test_a_sign_on_a_skewed_clock_is_life_as_long_as_it_changes(sign: float) -> None:
    assert watched((1, 1, 50), (3, 2, 50), (4, 1, sign), stall_timeout=3).silence == 0


def test_a_time_limit_counts_what_ran_before_the_observer_came() -> None:
    assert watched((1, 1, 50), timeout=10, age=8.5).verdict == ""
    assert watched((2, 2, 50), timeout=10, age=8.5).verdict == "timeout"


def test_beating_work_still_runs_out_of_time() -> None:
    assert watched(*((float(n), 1.0, float(n)) for n in range(1, 4)), timeout=3, stall_timeout=2).verdict == "timeout"


@pytest.mark.parametrize(
    ("timeout", "stall", "left"), [(0, 0, float("inf")), (10, 0, 7), (0, 5, 3), (10, 5, 3), (4, 50, 1), (2, 9, 0)]
)
def test_how_long_until_a_limit_would_be_reached(timeout: float, stall: float, left: float) -> None:
    assert watched((1, 1, 50), (3, 2, 50), timeout=timeout, stall_timeout=stall).left == left


def test_without_limits_nothing_ever_runs_out() -> None:
    assert watched(*((1e6 * n, 1e6, 50.0) for n in range(1, 9))).verdict == ""
