"""INT, TERM and HUP: one request to each tree, a grace, an exact exit, and nothing lost."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from tests.conftest import alive, clean_environment, until

HEARING = 'for s in HUP INT TERM; do trap "echo $s >> heard; [ $s = HUP ] || exit 1" $s; done; echo up >> up; '
FOREVER = "while :; do sleep 0.02; done"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_work_with_one_request_and_gives_it_back_at_no_cost(store, number, code):
    store.write(1, HEARING + FOREVER)
    store.write(2, f"echo up >> up; {FOREVER}")
    store.write(3, "echo 3 >> order", blockedBy=[1])
    run = store.start("-j", "2")
    store.wait_for("up", 2)
    run.send_signal(number)
    assert store.ends(run) == code
    assert store.lines("heard") == ["TERM"]
    assert store.statuses() == {1: "pending", 2: "pending", 3: "pending"}
    assert store.outcomes(1) == store.outcomes(2) == ["interrupted"]
    assert store.lines("order") == []
    store.wait_until_nothing_lives()
    # No retry was used: the next run has its one attempt.
    store.write(9, f"touch {store.folder}/x")
    second = store.start("-j", "2")
    store.wait_for("up", 4)
    assert store.shown(1)["attempts"][-1]["rung"] == "first"
    second.terminate()
    assert store.ends(second) == 143


def test_the_whole_tree_hears_it_and_what_does_not_heed_is_killed_after_five_seconds(store):
    store.write(1, f"sh -c \"trap '' TERM; echo \\$\\$ > pid2; {FOREVER}\" & echo $$ > pid1; trap '' TERM; {FOREVER}")
    run = store.start()
    pids = [store.number_in("pid1"), store.number_in("pid2")]
    began = time.monotonic()
    run.terminate()
    assert store.ends(run) == 143
    assert 4.5 < time.monotonic() - began < 9
    assert not any(alive(pid) for pid in pids)
    assert store.outcomes(1) == ["interrupted"]


def test_a_second_signal_kills_now(store):
    store.write(1, f"trap 'echo heard >> heard' TERM; echo up > up; {FOREVER}")
    run = store.start()
    store.wait_for("up")
    run.send_signal(signal.SIGINT)
    store.wait_for("heard")
    began = time.monotonic()
    run.send_signal(signal.SIGINT)
    assert store.ends(run) == 130
    assert time.monotonic() - began < 4.5
    assert store.outcomes(1) == ["interrupted"]
    store.wait_until_nothing_lives()


def test_nothing_starts_after_a_signal(store):
    store.write(1, f"trap 'sleep 0.3; exit 0' TERM; echo up > up; {FOREVER}")
    store.write(2, "echo 2 >> order", blockedBy=[1])
    for n in range(3, 9):
        store.write(n, f"echo {n} >> order", priority=-1)
    run = store.start("-j", "1")
    store.wait_for("up")
    run.terminate()
    assert store.ends(run) == 143
    assert store.lines("order") == []


def test_a_signal_during_the_wait_for_a_retry_or_a_person_ends_the_run_at_once(store):
    store.write(1, "echo up > up; exit 1", maxRetries=1, retryDelay=60)
    store.write(2)
    run = store.start("--wait")
    store.wait_for("up")
    store.wait_for_status(1, "pending")
    run.send_signal(signal.SIGINT)
    assert store.ends(run, 5) == 130


def test_a_signal_also_ends_a_run_that_a_critical_failure_has_stopped(store):
    store.write(1, "while [ ! -e up ]; do sleep 0.02; done; exit 3", onFailure="stop")
    store.write(2, f"touch up; {FOREVER}")
    run = store.start("-j", "2")
    store.wait_for_status(1, "failed")
    run.send_signal(signal.SIGINT)
    assert store.ends(run, 10) == 130
    assert store.outcomes(2) == ["interrupted"]


def test_max_time_also_ends_a_run_that_a_critical_failure_has_stopped(store):
    store.write(1, "while [ ! -e up ]; do sleep 0.02; done; exit 3", onFailure="stop")
    store.write(2, f"touch up; {FOREVER}")
    began = time.monotonic()
    store.run("-j", "2", "--max-time", "1", expect=1)
    assert time.monotonic() - began < 8


def test_under_nohup_a_hangup_changes_nothing(store, gate):
    store.write(1, f"echo up > up; {gate.wait}")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run = store.start()
    finally:
        signal.signal(signal.SIGHUP, before)
    store.wait_for("up")
    run.send_signal(signal.SIGHUP)
    for process in store.work():
        with suppress(psutil.Error):
            process.send_signal(signal.SIGHUP)
    gate.open()
    assert store.ends(run) == 0
    assert store.outcomes(1) == ["completed"]


def in_terminal(store, *arguments: str) -> tuple[int, int]:
    """Start a run in a terminal of its own, which it leads; its pid and our end of the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(store.folder)
        os.execve(sys.executable, store.command("run", *arguments), clean_environment(TERM="xterm"))
    return pid, terminal


def wait_for_exit(pid: int, terminal: int) -> tuple[int, bytes]:
    """The exit code of a process in a terminal, and what it drew."""
    drawn = b""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.02)[0]:
            with suppress(OSError):
                drawn += os.read(terminal, 65536)
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), drawn
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError(f"it did not end: {drawn[-500:]!r}")


def test_ctrl_c_in_a_terminal_gives_the_command_exactly_one_signal(store):
    store.write(1, HEARING + FOREVER)
    pid, terminal = in_terminal(store)
    try:
        store.wait_for("up")
        os.write(terminal, b"\x03")
        code, _ = wait_for_exit(pid, terminal)
    finally:
        os.close(terminal)
    assert code == 130
    assert store.lines("heard") == ["TERM"]
    assert store.outcomes(1) == ["interrupted"]


def test_a_terminal_that_is_closed_hangs_the_run_up_in_order(store):
    store.write(1, HEARING + FOREVER)
    pid, terminal = in_terminal(store)
    store.wait_for("up")
    os.close(terminal)
    _, status = until(lambda: (found := os.waitpid(pid, os.WNOHANG))[0] and found, "the end of the run")
    assert os.waitstatus_to_exitcode(status) == 129
    assert store.lines("heard") == ["TERM"]
    assert store.outcomes(1) == ["interrupted"]


def test_in_a_terminal_the_live_view_shows_what_runs(store, gate):
    store.write(1, f"echo the last line; {gate.wait}", name="talker")
    pid, terminal = in_terminal(store)
    drawn = b""
    try:
        deadline = time.monotonic() + 15
        while b"the last line" not in drawn and time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.05)[0]:
                drawn += os.read(terminal, 65536)
        gate.open()
        code, rest = wait_for_exit(pid, terminal)
    finally:
        os.close(terminal)
    assert code == 0
    assert b"talker" in drawn
    assert b"the last line" in drawn
    assert b"1 completed" in rest


@pytest.mark.parametrize("streams", ["stdout", "stderr", "both"])
def test_a_reader_that_goes_away_does_not_end_a_run(store, gate, streams):
    store.write(1, f"echo up > up; {gate.wait}")
    store.write(2, "echo 2 >> order; exit 1", blockedBy=[1])
    store.write(3, "echo 3 >> order", blockedBy=[1])
    pipes = {name: subprocess.PIPE for name in ("stdout", "stderr") if streams in (name, "both")}
    run = store.start("-j", "1", **pipes)
    store.wait_for("up")
    for name in pipes:
        getattr(run, name).close()
    gate.open()
    assert store.ends(run) == 1
    assert store.lines("order") == ["2", "3"]


def test_a_run_without_any_stream_runs(store):
    store.write(1, "echo 1 >> order; readlink /proc/self/fd/0 >> order")
    command = " ".join(store.command("run"))
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {command} <&- >&- 2>&-"], cwd=store.folder, env=clean_environment(), timeout=30
    )
    assert done.returncode == 0
    assert store.lines("order") == ["1", "/dev/null"]
