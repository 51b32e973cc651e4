"""Limits of a running attempt: time, silence, signs of life, and the end of its whole tree."""

from __future__ import annotations

import os
import signal
import sys
import time

import psutil
import pytest

from tests.conftest import alive, until

TASKGRAPH = f"{sys.executable} -m taskgraph"
FOREVER = "while :; do sleep 0.05; done"


# Time


def test_a_timeout_ends_the_attempt_and_counts_as_a_failure(store):
    store.write(1, "echo $$ >> pids; exec sleep 60", timeout=0.5, maxRetries=1)
    began = time.monotonic()
    assert store.go().exit_code == 1
    assert 1.0 <= time.monotonic() - began < 6
    assert store.outcomes(1) == ["timeout", "timeout"]
    assert store.last(1)["signal"] == "SIGTERM"
    assert not any(alive(int(pid)) for pid in store.lines("pids"))


def test_a_timeout_counts_though_the_work_is_loud(store):
    store.write(1, "while :; do echo loud; sleep 0.05; done", timeout=0.5, stallTimeout=5)
    store.go()
    assert store.outcomes(1) == ["timeout"]


def test_work_that_ends_in_time_is_left_in_peace(store):
    store.write(1, "sleep 0.3", timeout=5, stallTimeout=5)
    assert store.go().exit_code == 0
    assert store.outcomes(1) == ["completed"]


def test_exit_0_on_the_request_to_end_is_still_a_timeout(store):
    store.write(1, f"trap 'exit 0' TERM; {FOREVER}", timeout=0.3)
    assert store.go().exit_code == 1
    assert store.outcomes(1) == ["timeout"]


# Silence


def test_silence_is_found_and_the_retry_recovers_the_task(store):
    store.write(1, 'echo begun; [ "$TASKGRAPH_ATTEMPT" = 2 ] || exec sleep 60', stallTimeout=0.6, maxRetries=1)
    told = []
    began = time.monotonic()
    outcome = store.go(tell=told.append)
    assert outcome.exit_code == 0
    assert 0.6 <= time.monotonic() - began < 5
    assert store.outcomes(1) == ["stalled", "completed"]
    assert outcome.counts["recovered"] == 1
    assert "stalled" in [event["event"] for event in told]


@pytest.mark.parametrize(
    ("beat", "limit"),
    [
        ("echo still here", 2),
        ('touch "$TASKGRAPH_HEARTBEAT"', 2),
        (': >> "$TASKGRAPH_HEARTBEAT"; date > "$TASKGRAPH_HEARTBEAT"', 2),
        # Each of these starts a Python, which may take seconds beside many others.
        (f"{TASKGRAPH} heartbeat", 5),
        pytest.param(f"{TASKGRAPH} heartbeat 1 -q > /dev/null", 5, marks=pytest.mark.slow),
    ],
    ids=["growth of the log", "touch", "write", "command", "command by id"],
)
def test_signs_of_life_keep_work_alive(store, beat, limit):
    longer = f"end=$(($(date +%s) + {limit + 1})); while [ $(date +%s) -le $end ]"
    store.write(1, f"{longer}; do {beat}; sleep 0.2; done", stallTimeout=limit)
    assert store.go(slots=1).exit_code == 0
    assert store.outcomes(1) == ["completed"]
    attempt = store.last(1)
    assert attempt["number"] == 1


def test_without_a_stall_limit_silence_is_fine(store):
    store.write(1, "sleep 1.2")
    store.write(2, "true", stallTimeout=0.5)
    assert store.go().exit_code == 0


def test_only_the_silent_one_of_two_is_ended(store):
    store.write(1, f"echo $$ > pid1; {FOREVER}", stallTimeout=0.6)
    store.write(2, "until [ -e over ]; do echo beat; sleep 0.1; done", stallTimeout=0.6)
    run = store.start("-j", "2")
    store.wait_for_status(1, "failed")
    assert store.status(2) == "in_progress"
    (store.folder / "over").touch()
    assert store.ends(run) == 1
    assert store.outcomes(2) == ["completed"]


def test_a_start_that_carries_a_time_in_the_future_hides_no_sign_of_life(store):
    # The clock stood six hours ahead as the work began.
    store.write(1, "for i in 1 2 3 4 5 6; do echo beat; sleep 0.3; done", stallTimeout=1)
    store.go(clock=lambda: time.time() + 6 * 3600)
    assert store.outcomes(1) == ["completed"]


def test_a_beat_from_the_future_hides_no_later_sign_of_life(store):
    ahead = 'touch -d "6 hours" "$TASKGRAPH_HEARTBEAT"'
    store.write(1, f"{ahead}; for i in 1 2 3 4 5 6; do echo beat; sleep 0.3; done", stallTimeout=1)
    store.go()
    assert store.outcomes(1) == ["completed"]


def test_a_beat_from_the_future_hides_no_silence(store):
    store.write(1, 'touch -d "6 hours" "$TASKGRAPH_HEARTBEAT"; exec sleep 60', stallTimeout=0.6)
    store.go()
    assert store.outcomes(1) == ["stalled"]


def test_a_heartbeat_written_by_hand_hides_no_silence(store):
    store.write(1, "exec sleep 60", stallTimeout=0.6, heartbeatAt="2999-01-01T00:00:00Z")
    store.go()
    assert store.outcomes(1) == ["stalled"]


def test_a_runner_and_work_that_were_stopped_together_stall_nobody(store):
    store.write(1, "echo $$ > pid1; until [ -e over ]; do echo beat; sleep 0.1; done", stallTimeout=2, timeout=60)
    run = store.start()
    pid = store.number_in("pid1")
    store.wait_for_status(1, "in_progress")
    until(lambda: store.log(1).count(b"beat") > 3, "beats")
    sign = next((store.tasks / "run").glob("*.lock"))
    for each in (run.pid, pid):
        os.kill(each, signal.SIGSTOP)
    until(lambda: psutil.Process(run.pid).status() == psutil.STATUS_STOPPED, "the stop")
    stopped, before = time.monotonic(), sign.stat().st_mtime
    until(lambda: time.monotonic() - stopped > 2.5, "more than the limit to pass")
    os.kill(run.pid, signal.SIGCONT)
    # The runner is the first to wake, and looks at work that has not said anything for longer than the limit.
    until(lambda: sign.stat().st_mtime != before, "the runner to go on")
    os.kill(pid, signal.SIGCONT)
    beats = store.log(1).count(b"beat")
    until(lambda: store.log(1).count(b"beat") > beats + 3, "more beats")
    (store.folder / "over").touch()
    assert store.ends(run) == 0
    assert store.outcomes(1) == ["completed"]


def test_a_runner_that_was_stopped_alone_still_finds_silence_later(store):
    store.write(1, f"echo $$ > pid1; {FOREVER}", stallTimeout=1.2)
    run = store.start()
    store.number_in("pid1")
    os.kill(run.pid, signal.SIGSTOP)
    stopped = time.monotonic()
    until(lambda: time.monotonic() - stopped > 1.5, "the limit to pass")
    os.kill(run.pid, signal.SIGCONT)
    assert store.ends(run) == 1
    assert store.outcomes(1) == ["stalled"]


# The whole tree


def gone(store, *names: str) -> None:
    """The processes whose pids the files hold have ended."""
    for name in names:
        pid = store.number_in(name)
        assert not alive(pid), f"{name} still lives"


def test_grandchildren_end_with_it(store):
    store.write(1, "sh -c 'echo $$ > pid2; sleep 60' & echo $$ > pid1; wait", timeout=0.5)
    store.go()
    gone(store, "pid1", "pid2")


def test_a_daemon_in_its_own_session_ends_with_it(store):
    store.write(
        1, "setsid sh -c 'echo $$ > pid2; exec sleep 60' > /dev/null 2>&1 & echo $$ > pid1; wait; sleep 60", timeout=0.5
    )
    store.go()
    gone(store, "pid1", "pid2")


def test_what_ignores_the_request_is_killed_after_the_grace(store):
    script = f"trap '' TERM; {FOREVER}"
    store.write(1, f'sh -c "echo \\$\\$ > pid2; {script}" & echo $$ > pid1; {script}', timeout=0.4)
    began = time.monotonic()
    store.go(grace=0.7)
    assert time.monotonic() - began >= 1.1
    gone(store, "pid1", "pid2")
    assert store.outcomes(1) == ["timeout"]
    assert store.last(1)["signal"] == "SIGKILL"


def test_a_child_without_environment_that_ignores_the_request_is_killed_too(store):
    stubborn = f"env -i sh -c \"trap '' TERM; echo \\$\\$ > pid2; {FOREVER}\""
    store.write(1, f"{stubborn} & echo $$ > pid1; wait", timeout=0.5)
    store.go(grace=0.7)
    gone(store, "pid1", "pid2")


def test_the_retry_starts_only_when_all_of_the_old_tree_has_gone(store):
    stubborn = "trap '' TERM; for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done; echo over >> trace"
    store.write(1, f"echo start >> trace; [ \"$TASKGRAPH_ATTEMPT\" = 2 ] || {{ ({stubborn}) > /dev/null 2>&1 & exec sleep 60; }}",
                timeout=0.3, maxRetries=1)  # fmt: skip
    assert store.go(grace=5).exit_code == 0
    assert store.lines("trace") == ["start", "over", "start"]


def test_the_request_to_end_comes_once_to_each_process(store):
    store.write(1, f"trap 'echo TERM >> heard' TERM; echo up; {FOREVER}", timeout=0.4)
    store.go(grace=1.0)
    assert store.lines("heard") == ["TERM"]


def test_what_a_finished_command_left_in_the_background_is_left_alone(store):
    store.write(1, "sleep 60 & echo $! > pid2")
    store.write(2, "setsid sleep 60 > /dev/null 2>&1 & echo $! > pid3; exit 1", maxRetries=1)
    began = time.monotonic()
    store.go()
    assert time.monotonic() - began < 30
    assert alive(store.number_in("pid2"))
    assert alive(store.number_in("pid3"))
    assert store.outcomes(2) == ["failed", "failed"]
