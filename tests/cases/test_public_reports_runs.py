"""Faults that struck comparable tools and were reported in public: processes, output, signals, retries and time."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from tests.cli.driver import Keyboard
from tests.cli.test_create import ODD
from tests.conftest import Gate, StoreBox, clean_environment, until


class Terminal:
    """A program that has a terminal of its own, as the one in the foreground."""

    def __init__(self, pid: int, keyboard: int) -> None:
        self.pid, self.keyboard = pid, keyboard

    def end(self, seconds: float = 20) -> int:
        """Wait for the program to end, reading what it draws; its exit code."""
        os.set_blocking(self.keyboard, False)

        def ended() -> tuple[int] | None:
            with suppress(OSError):
                os.read(self.keyboard, 65536)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return (os.waitstatus_to_exitcode(status),) if pid else None

        return int(until(ended, "the program to end", seconds)[0])


@contextmanager
def terminal(store: StoreBox, *arguments: str, ignore: signal.Signals | None = None) -> Iterator[Terminal]:
    """Start a command in a terminal."""
    command, env = store.command(*arguments), clean_environment(TERM="xterm")
    pid, keyboard = pty.fork()
    if pid == 0:
        try:
            if ignore is not None:
                signal.signal(ignore, signal.SIG_IGN)
            os.chdir(store.folder)
            os.execve(command[0], command, env)
        finally:
            os._exit(99)
    try:
        yield Terminal(pid, keyboard)
    finally:
        with suppress(OSError):
            os.close(keyboard)
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_something_left_in_the_background_keeps_nobody_waiting(store: StoreBox) -> None:
    store.write(1, "sleep 313 & echo started")
    store.write(2, "echo 2 >> ran", blockedBy=[1])
    began = time.monotonic()
    store.run("-j", "2")
    assert time.monotonic() - began < 10
    assert store.log(1) == b"started\n"
    assert store.lines("ran") == ["2"]
    # It is left alone, as the design says.
    assert any(process.cmdline()[-1:] == ["313"] for process in store.work())


def test_work_that_ended_while_the_runner_was_dead_is_not_run_again(store: StoreBox, gate: Gate) -> None:
    store.write(1, f"echo up >> up; {gate.wait}; echo one >> ran")
    store.write(2, "echo two >> ran", blockedBy=[1])
    run = store.start()
    store.wait_for("up")
    run.kill()
    run.wait()
    gate.open()
    store.wait_for("ran")
    store.wait_until_nothing_lives()
    store.run()
    assert store.lines("ran") == ["one", "two"]
    assert [(each["outcome"], each["exitCode"]) for each in store.read(1)["attempts"]] == [("completed", 0)]


def pause(store: StoreBox, count: int, limit: float, ticks: int, sleep: float) -> None:
    """Stop a runner and all it runs for longer than the limit; nothing may be taken for stalled."""
    for number in range(1, count + 1):
        store.write(number, f"for i in $(seq {ticks}); do echo tick; sleep 0.2; done; echo {number} >> ran",
                    stallTimeout=limit, maxRetries=2)  # fmt: skip
    run = store.start("-j", str(count))
    until(lambda: all((store.tasks / "logs" / f"{i}.1.log").exists() for i in range(1, count + 1)), "all to run")
    stopped = store.processes()
    for process in [psutil.Process(run.pid), *stopped]:
        process.send_signal(signal.SIGSTOP)
    time.sleep(sleep)  # the suspension itself
    for process in [*stopped, psutil.Process(run.pid)]:
        with suppress(psutil.Error):
            process.send_signal(signal.SIGCONT)
    assert store.ends(run, 60) == 0
    assert sorted(store.lines("ran")) == [str(i) for i in range(1, count + 1)]
    assert all(store.outcomes(i) == ["completed"] for i in range(1, count + 1))


def test_a_suspended_laptop_stalls_nobody(store: StoreBox) -> None:
    pause(store, 2, limit=1.0, ticks=6, sleep=2.0)


@pytest.mark.slow
def test_a_laptop_suspended_for_long_stalls_nobody(store: StoreBox) -> None:
    pause(store, 4, limit=5.0, ticks=50, sleep=15.0)


def test_a_superseded_worker_that_reports_late_changes_nothing(tg: Keyboard) -> None:
    (tg.store.tasks / "config.toml").write_text("[defaults]\nlease = 0.2\nmaxRetries = 3\n")
    tg.ok("create", "T1")
    tg.ok("create", "T2", "-b", "1")
    tg.ok("claim", "1", "--owner", "A")
    until(lambda: tg.json("get", "1")["state"] == "stalled", "the claim to lapse")
    tg.ok("claim", "1", "--owner", "B")
    for late in (["update", "1", "--status", "completed", "--owner", "A"], ["complete", "1", "--owner", "A"],
                 ["complete", "1", "--attempt", "1"], ["fail", "1", "--owner", "A"], ["heartbeat", "1", "--owner", "A"],
                 ["release", "1", "--owner", "A"]):  # fmt: skip
        told = tg.refused(6, *late)
        assert "B" in told or "attempt 2" in told, told
    assert tg.store.status(1) == "in_progress"
    assert tg.json("get", "2")["state"] == "blocked"
    tg.ok("update", "1", "--status", "completed", "--owner", "B")
    assert "completed" in tg.refused(6, "complete", "1", "--attempt", "2")


def share(store: StoreBox, tasks: int, runners: int) -> None:
    """Let several runners share a store; nothing is done twice."""
    for number in range(1, tasks + 1):
        store.write(number, f"echo {number} >> ran; sleep 0.05")
    runs = [store.start("-j", "4") for _ in range(runners)]
    assert [store.ends(run, 60) for run in runs] == [0] * runners
    assert sorted(store.lines("ran"), key=int) == [str(i) for i in range(1, tasks + 1)]


def test_two_runners_on_one_store_do_nothing_twice(store: StoreBox) -> None:
    share(store, 16, 2)


@pytest.mark.slow
def test_four_runners_on_one_store_do_nothing_twice(store: StoreBox) -> None:
    share(store, 40, 4)


_REDRAW = (
    "import sys,time\nfor i in range(%d):\n sys.stdout.write('\\r%%5d/20000' %% i); sys.stdout.flush(); time.sleep(%g)"
)


def draw_bar(tg: Keyboard, steps: int, delay: float, limit: float) -> None:
    """Run something that redraws one line without ever ending it."""
    tg.store.write(1, [sys.executable, "-c", _REDRAW % (steps, delay)], stallTimeout=limit)
    tg.ok("run")
    assert tg.store.outcomes(1) == ["completed"]
    assert tg.store.log(1) == b"".join(b"\r%5d/20000" % i for i in range(steps))
    assert tg.ok("logs", "1").out.strip() == f"{steps - 1}/20000"


def test_a_progress_bar_counts_as_life_and_shows_as_one_line(tg: Keyboard) -> None:
    draw_bar(tg, 150, 0.01, 0.7)


@pytest.mark.slow
def test_a_long_progress_bar_counts_as_life_and_shows_as_one_line(tg: Keyboard) -> None:
    draw_bar(tg, 20_000, 0.00075, 5)


@pytest.mark.parametrize("size", [4_000_000, pytest.param(64_000_000, marks=pytest.mark.slow)])
def test_a_huge_line_is_kept_whole_and_costs_no_memory(store: StoreBox, size: int) -> None:
    store.write(1, f"head -c {size} /dev/zero | tr '\\0' x")
    run = store.start()
    _, status, usage = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    assert run.returncode == 0
    assert (store.tasks / "logs" / "1.1.log").stat().st_size == size
    assert usage.ru_maxrss < 150_000


def test_a_killed_runner_and_its_tree_leave_the_same_ending_as_any_other_death(store: StoreBox) -> None:
    store.write(1, "echo up >> up; sleep 317")
    store.write(2, "echo 2 >> ran", blockedBy=[1], triggerRule="all_done")
    store.write(3, "echo 3 >> ran", blockedBy=[1])
    run = store.start()
    store.wait_for("up")
    run.kill()
    run.wait()
    for process in store.processes():
        with suppress(psutil.Error):
            process.kill()
    store.run(expect=1)
    assert store.lines("ran") == ["2"]
    assert store.statuses() == {1: "failed", 2: "completed", 3: "cancelled"}
    assert store.outcomes(1) == ["lost"]


_TIDY = (
    "n=0; trap 'n=$((n+1)); echo int$n >> sig; [ $n = 1 ] && (sleep {rest}; echo clean >> sig) && exit 130' INT TERM; "
    "echo up >> up; sleep 319 & wait"
)


def test_a_key_pressed_once_is_told_once_and_waited_for(store: StoreBox) -> None:
    store.write(1, _TIDY.format(rest="0.3"))
    with terminal(store, "run") as screen:
        store.wait_for("up")
        os.write(screen.keyboard, b"\x03")
        assert screen.end() == 130
    assert store.lines("sig") == ["int1", "clean"]
    assert (store.status(1), store.outcomes(1)) == ("pending", ["interrupted"])
    store.wait_until_nothing_lives()


@pytest.mark.parametrize("times", [2, 3])
def test_a_key_pressed_again_ends_it_now(store: StoreBox, times: int) -> None:
    store.write(1, _TIDY.format(rest="60"))
    with terminal(store, "run") as screen:
        store.wait_for("up")
        os.write(screen.keyboard, b"\x03")
        store.wait_for("sig")
        began = time.monotonic()
        for _ in range(times - 1):
            os.write(screen.keyboard, b"\x03")
        assert screen.end() == 130
        assert time.monotonic() - began < 4.5
    assert store.status(1) == "pending"
    store.wait_until_nothing_lives()


def test_retries_begin_anew_with_every_visit(tg: Keyboard) -> None:
    box = tg.store
    box.write(1, "n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) > n; [ $((n % 3)) = 2 ]", maxRetries=2)
    tg.ok("run")
    assert box.lines("n") == ["3"]
    tg.ok("update", "1", "--status", "pending")
    told = tg.ok("run")
    assert box.lines("n") == ["6"]
    assert [each["number"] for each in box.read(1)["attempts"]] == [1, 2, 3, 4, 5, 6]
    assert "(try 3)" in told.err
    assert "(try 4)" not in told.err


def test_a_limit_raised_by_hand_is_obeyed(tg: Keyboard) -> None:
    box = tg.store
    box.write(1, "echo x >> n; [ $(wc -l < n) = 6 ]", maxRetries=2)
    assert tg("run").code == 1
    assert len(box.lines("n")) == 3
    data = box.read(1)
    data["maxRetries"] = 5
    box.write(1, **{key: value for key, value in data.items() if key != "id"})
    tg.ok("reopen", "1")
    tg.ok("run")
    assert len(box.lines("n")) == 6


def test_every_attempt_has_a_log_of_its_own(tg: Keyboard) -> None:
    box = tg.store
    box.write(1, "echo attempt-$TASKGRAPH_ATTEMPT; test -f ok || { touch ok; echo boom >&2; exit 7; }", maxRetries=1)
    tg.ok("run")
    tg.ok("reopen", "1")
    tg.ok("run")
    assert [box.log(1, i) for i in (1, 2, 3)] == [b"attempt-1\nboom\n", b"attempt-2\n", b"attempt-3\n"]
    assert tg.ok("logs", "1", "--attempt", "1").lines == ["attempt-1", "boom"]
    first = box.read(1)["attempts"][0]
    assert (first["exitCode"], first["outcome"]) == (7, "failed")
    assert first["startedAt"] <= first["finishedAt"] <= box.read(1)["attempts"][1]["startedAt"]


def test_a_task_reads_nothing_from_the_input_of_the_run(store: StoreBox) -> None:
    store.write(1, "cat > got; echo rc=$?")
    store.write(2, 'read x; echo "[$x]"')
    began = time.monotonic()
    with subprocess.Popen(["sleep", "30"], stdout=subprocess.PIPE) as silent:
        store.run("-j", "2", stdin=silent.stdout)
        silent.kill()
    assert time.monotonic() - began < 20
    assert (store.folder / "got").read_bytes() == b""
    assert (store.log(1), store.log(2)) == (b"rc=0\n", b"[]\n")


def test_a_run_in_a_loop_leaves_the_lines_of_the_loop_alone(store: StoreBox) -> None:
    store.write(1, "cat > got")
    script = f"while read l; do {' '.join(store.command('run', '-q'))} > /dev/null; echo $l >> seen; done"
    subprocess.run(["sh", "-c", script], input=b"l1\nl2\nl3\n", cwd=store.folder, env=clean_environment(), check=True,
                   timeout=60)  # fmt: skip
    assert store.lines("seen") == ["l1", "l2", "l3"]


def test_in_a_terminal_a_task_does_not_read_the_keyboard(store: StoreBox) -> None:
    store.write(1, "cat > got; echo rc=$?")
    with terminal(store, "run") as screen:
        os.write(screen.keyboard, b"typed\n")
        assert screen.end() == 0
    assert (store.folder / "got").read_bytes() == b""


def test_times_in_the_future_count_as_now(tg: Keyboard) -> None:
    later = (datetime.now(UTC) + timedelta(hours=6)).isoformat().replace("+00:00", "Z")
    box = tg.store
    failed = {"number": 1, "visit": 1, "outcome": "failed", "retryIn": 0.3, "startedAt": later, "finishedAt": later}
    begun = {"number": 1, "visit": 1, "owner": "a", "startedAt": later}
    box.write(1, "echo 1 >> ran", maxRetries=1, retryDelay=0.3, notBefore=later, attempts=[failed])
    box.write(2, status="in_progress", owner="a", heartbeatAt=later, startedAt=later, attempts=[begun])
    assert "-" not in tg.ok("list").out
    assert tg.json("get", "2")["heartbeatAt"] < later
    began = time.monotonic()
    assert tg("run").code == 3
    assert time.monotonic() - began < 20
    assert box.lines("ran") == ["1"]


_PRINT = "import sys,json; json.dump(sys.argv[1:], open('args','w'))"


def test_arguments_are_neither_split_nor_expanded(store: StoreBox) -> None:
    folder = store.folder / "sp ace '\"🚀"
    folder.mkdir()
    import json

    assert store.cli("create", "x", "--cwd", folder.name, "--", sys.executable, "-c", _PRINT, *ODD).returncode == 0
    assert store.cli("create", "y", "--env", "TG_X=a  b", "--command", 'printf "%s\\n" "a b" "$TG_X"').returncode == 0
    store.run()
    assert json.loads((folder / "args").read_text()) == ODD
    assert store.log(2) == b"a b\na  b\n"


def test_when_the_terminal_closes_the_run_ends_in_order(store: StoreBox) -> None:
    store.write(1, "echo up >> up; sleep 323")
    with terminal(store, "run") as screen:
        store.wait_for("up")
        os.close(screen.keyboard)
        _, status = os.waitpid(screen.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGHUP
    store.wait_until_nothing_lives()
    assert (store.status(1), store.outcomes(1)) == ("pending", ["interrupted"])
    store.write(1, "echo again >> ran", attempts=store.read(1)["attempts"])
    store.run()
    assert store.lines("ran") == ["again"]


def test_when_the_terminal_closes_a_run_that_ignores_it_goes_on(store: StoreBox, gate: Gate) -> None:
    store.write(1, f"echo up >> up; {gate.wait}; echo 1 >> ran")
    store.write(2, "echo 2 >> ran", blockedBy=[1])
    with terminal(store, "run", ignore=signal.SIGHUP) as screen:
        store.wait_for("up")
        os.close(screen.keyboard)
        gate.open()
        _, status = os.waitpid(screen.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
    assert store.lines("ran") == ["1", "2"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupted_run_says_so_by_its_exit_code(store: StoreBox, number: signal.Signals, code: int) -> None:
    store.write(1, "echo up >> up; sleep 331")
    run = store.start()
    store.wait_for("up")
    run.send_signal(number)
    assert store.ends(run) == code
    assert store.status(1) == "pending"
    store.wait_until_nothing_lives()


@pytest.mark.parametrize("rounds", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_no_dependent_of_a_failed_step_runs(tg: Keyboard, rounds: int) -> None:
    box = tg.store
    box.write(1, "exit 9")
    box.write(2, "echo 2 >> ran", blockedBy=[1])
    box.write(3, "echo 3 >> ran", blockedBy=[1])
    for _ in range(rounds):
        told = tg("run", "-j", "4", "-q")
        assert told.code == 1
        assert any("first failure: 1 " in line and ".log" in line for line in told.lines[-2:])
        tg.ok("reopen", "--failed")
    assert box.lines("ran") == []
