"""Killing runners and keepers: work goes on, the next run takes it over, and nothing ever runs twice at once."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys

import pytest

from taskgraph.executor import keeper
from taskgraph.executor.records import held
from taskgraph.manager import TaskManager
from taskgraph.runner import adopt
from taskgraph.runner.presence import Presence
from taskgraph.store import layout
from tests.conftest import alive, clean_environment, until


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def begun(store, gate, *tasks: int, **fields) -> None:
    """Write tasks that say their pid, wait at the gate, and say when they are over."""
    for n in tasks:
        store.write(n, f"echo $$ >> pid{n}; {gate.wait}; echo {n} >> over", **fields)


def kill_runner(store, run) -> None:
    kill(run.pid)
    assert store.ends(run) == -signal.SIGKILL


def test_keeper_and_work_outlive_a_killed_runner_and_the_next_run_takes_over(store, gate):
    begun(store, gate, 1, 2)
    store.write(3, "echo 3 >> over", blockedBy=[1, 2])
    run = store.start("-j", "2")
    pids = [store.number_in("pid1"), store.number_in("pid2")]
    kill_runner(store, run)
    assert all(alive(pid) for pid in pids)
    assert len(store.keepers()) == 1
    second = store.start("-j", "2")
    until(lambda: len(store.keepers()) == 2, "the keeper of the second run")
    gate.open()
    assert store.ends(second) == 0
    assert sorted(store.lines("over")) == ["1", "2", "3"]
    assert [store.outcomes(n) for n in (1, 2)] == [["completed"], ["completed"]]
    store.wait_until_nothing_lives()


def test_ends_that_came_while_nobody_ran_are_taken_over(store, gate):
    begun(store, gate, 1)
    store.write(2, f'echo $$ > pid2; echo \'{{"a": 1}}\' > "$TASKGRAPH_OUTPUT"; {gate.wait}; echo last words; exit 7')
    store.write(3, f"echo '5' > \"$TASKGRAPH_OUTPUT\"; echo $$ > pid3; {gate.wait}")
    store.write(4, 'cat "$TASKGRAPH_INPUTS"', blockedBy=[3])
    run = store.start("-j", "3")
    for n in (1, 2, 3):
        store.number_in(f"pid{n}")
    kill_runner(store, run)
    gate.open()
    store.wait_until_nothing_lives()
    assert store.status(1) == "in_progress"
    store.run(expect=1)
    assert [store.outcomes(n) for n in (1, 2, 3)] == [["completed"], ["failed"], ["completed"]]
    assert store.last(2)["exitCode"] == 7
    assert store.last(2)["lastLine"] == "last words"
    assert store.read(3)["result"] == 5
    assert b'"3":5' in store.log(4).replace(b" ", b"")
    assert store.lines("over") == ["1"]


def test_a_runner_killed_right_after_its_first_start_loses_nothing(store):
    # Starts are on record before a command can run, however early the runner dies.
    store.write(1, "echo ran >> runs; kill -KILL $(cat runner)")
    script = "import os, sys; open('runner', 'w').write(str(os.getpid())); from taskgraph.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "run"],
        cwd=store.folder,
        env=clean_environment(),
        capture_output=True,
        timeout=30,
    )
    assert done.returncode == -signal.SIGKILL
    until(lambda: not store.keepers(), "the keeper to end")
    store.run()
    assert store.lines("runs") == ["ran"]
    assert store.outcomes(1) == ["completed"]


KILLED_AFTER_HAND_OVER = """
import os, sys
from taskgraph.executor.local import LocalExecutor
start = LocalExecutor.start
def killed(self, jobs):
    start(self, jobs)
    if jobs:
        os.kill(os.getpid(), 9)
LocalExecutor.start = killed
from taskgraph.cli.main import main
main()
"""

KILLED_BEFORE_FILES = """
import os, sys
from taskgraph.store.files import Store
save = Store._save_each
def killed(self, graph, tasks, by, **more):
    if any(task.data.get("status") == "completed" for task in tasks):
        os.kill(os.getpid(), 9)
    return save(self, graph, tasks, by, **more)
Store._save_each = killed
from taskgraph.cli.main import main
main()
"""


@pytest.mark.parametrize("count", [1, 50])
def test_a_runner_killed_as_it_hands_over_starts_nothing_twice(store, gate, count):
    for n in range(1, count + 1):
        store.write(n, f"echo {n} >> runs; {gate.wait}")
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AFTER_HAND_OVER, "run", "-q", "-j", "64"], cwd=store.folder,
        env=clean_environment(), capture_output=True, timeout=30,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    second = store.start("-j", "64")
    store.wait_for("runs", count)
    gate.open()
    assert store.ends(second) == 0
    assert sorted(map(int, store.lines("runs"))) == list(range(1, count + 1))
    assert all(store.outcomes(n) == ["completed"] for n in range(1, count + 1))


def test_a_runner_killed_as_it_hands_over_a_task_with_a_long_history_starts_nothing_twice(store, gate):
    # Such a start is too long to be promised, so it must be in its file before its command can run.
    past = [{"number": n, "outcome": "failed", "error": "no seats left " * 5} for n in range(1, 60)]
    store.write(1, f"echo $TASKGRAPH_ATTEMPT >> runs; {gate.wait}", attempts=past, maxRetries=1000)
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AFTER_HAND_OVER, "run", "-q"],
        cwd=store.folder,
        env=clean_environment(),
        capture_output=True,
        timeout=30,
    )
    assert done.returncode == -signal.SIGKILL
    store.wait_for("runs")
    second = store.start()
    until(lambda: len(store.keepers()) == 2, "the second run")
    gate.open()
    assert store.ends(second) == 0
    assert store.lines("runs") == ["60"]
    assert store.outcomes(1)[59:] == ["completed"]


@pytest.mark.parametrize("size", [1, 5000])
def test_a_runner_killed_between_history_and_files_runs_nothing_again(store, size):
    result = "x" * size
    store.write(1, f"""echo ran >> runs; echo '"{result}"' > "$TASKGRAPH_OUTPUT" """)
    done = subprocess.run(
        [sys.executable, "-c", KILLED_BEFORE_FILES, "run", "-q"], cwd=store.folder, env=clean_environment(),
        capture_output=True, timeout=30,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    store.run()
    assert store.lines("runs") == ["ran"]
    assert store.outcomes(1) == ["completed"]
    assert store.read(1)["result"] == result


def test_a_killed_keeper_means_lost_and_its_orphans_end_before_the_retry(store, gate):
    store.write(
        1,
        'echo begin $TASKGRAPH_ATTEMPT >> trace; if [ "$TASKGRAPH_ATTEMPT" = 1 ]; then echo $$ > pid1; '
        f"trap 'echo end 1 >> trace; exit' TERM; {gate.wait}; fi",
        maxRetries=1,
    )
    run = store.start()
    orphan = store.number_in("pid1")
    kill(store.keepers()[0].pid)
    assert store.ends(run) == 0
    assert store.outcomes(1) == ["lost", "completed"]
    assert not alive(orphan)
    assert store.lines("trace")[-1] == "begin 2"


SILENT = """exec 9> lock; flock -n 9 || echo overlap > bad; [ "$TASKGRAPH_ATTEMPT" = 2 ] && exit 0
exec sh -c 'echo $$ > pid1; {wait}' > own.log 2>&1"""


def test_an_orphan_that_writes_to_no_log_is_ended_before_the_retry_too(store, gate):
    # Nothing of it holds the lock of its log, so only its identity tells that it lives.
    store.write(1, SILENT.format(wait=gate.wait), maxRetries=1)
    run = store.start()
    orphan = store.number_in("pid1")
    kill(store.keepers()[0].pid)
    assert store.ends(run) == 0
    assert store.outcomes(1) == ["lost", "completed"]
    assert store.lines("bad") == []
    assert not alive(orphan)


def test_an_orphan_that_writes_to_no_log_is_ended_by_the_next_run(store, gate):
    store.write(1, SILENT.format(wait=gate.wait), maxRetries=1)
    run = store.start()
    orphan = store.number_in("pid1")
    store.wait_for_status(1, "in_progress")
    kill_runner(store, run)
    kill(store.keepers()[0].pid)
    store.run()
    assert store.outcomes(1) == ["lost", "completed"]
    assert store.lines("bad") == []
    assert not alive(orphan)


def test_work_goes_on_beside_a_killed_keeper(store):
    store.write(1, "echo $$ > pid1; [ $TASKGRAPH_ATTEMPT = 2 ] || exec sleep 60", maxRetries=1)
    for n in range(2, 8):
        store.write(n, f"echo {n} >> over", blockedBy=[n - 1] if n > 2 else [1])
    run = store.start("-j", "1")
    store.number_in("pid1")
    kill(store.keepers()[0].pid)
    assert store.ends(run) == 0
    assert store.lines("over") == [str(n) for n in range(2, 8)]


def test_a_lost_attempt_counts_like_a_failed_one(store, gate):
    begun(store, gate, 1)
    run = store.start()
    store.number_in("pid1")
    kill(store.keepers()[0].pid)
    assert store.ends(run) == 1
    assert store.outcomes(1) == ["lost"]
    assert "vanished" in store.shown(1)["reason"]


def test_runner_and_keeper_killed_the_next_run_ends_the_orphan(store, gate):
    begun(store, gate, 1, maxRetries=1)
    run = store.start()
    orphan = store.number_in("pid1")
    keeping = store.keepers()[0].pid
    kill_runner(store, run)
    kill(keeping)
    until(lambda: not alive(keeping), "the keeper to end")
    assert alive(orphan)
    second = store.start()
    until(lambda: len(store.lines("pid1")) == 2, "the second attempt")
    assert not alive(orphan)
    gate.open()
    assert store.ends(second) == 0
    assert store.outcomes(1) == ["lost", "completed"]


def test_everything_killed_is_lost(store, gate):
    begun(store, gate, 1, maxRetries=1)
    run = store.start()
    pid = store.number_in("pid1")
    store.wait_for_status(1, "in_progress")
    kill_runner(store, run)
    for each in (store.keepers()[0].pid, pid):
        kill(each)
    store.wait_until_nothing_lives()
    gate.open()
    store.run()
    assert store.outcomes(1) == ["lost", "completed"]


def test_limits_hold_for_adopted_work(store):
    store.write(1, "echo $$ > pid1; exec sleep 60", stallTimeout=0.8)
    store.write(2, "echo $$ > pid2; while :; do echo beat; sleep 0.1; done", timeout=2)
    run = store.start("-j", "2")
    pids = [store.number_in("pid1"), store.number_in("pid2")]
    store.wait_for_status(1, "in_progress")
    store.wait_for_status(2, "in_progress")
    kill_runner(store, run)
    assert store.go().exit_code == 1
    assert store.outcomes(1) == ["stalled"]
    assert store.outcomes(2) == ["timeout"]
    assert not any(alive(pid) for pid in pids)


def test_an_interrupted_run_also_ends_what_it_adopted(store, gate):
    begun(store, gate, 1)
    run = store.start()
    pid = store.number_in("pid1")
    kill_runner(store, run)
    second = store.start()
    until(lambda: len(store.keepers()) == 2, "the second run")
    second.terminate()
    assert store.ends(second) == 143
    assert not alive(pid)
    assert store.status(1) == "pending"
    assert store.outcomes(1) == ["interrupted"]


def test_while_a_runner_lives_only_it_judges_its_attempts(store, gate):
    begun(store, gate, 1, stallTimeout=30)
    store.write(2, "echo 2 >> over", blockedBy=[1])
    run = store.start()
    store.number_in("pid1")
    second = store.start()
    # The second run neither ends nor takes over while the first one lives.
    until(lambda: len(store.keepers()) == 2, "the second run")
    os.kill(run.pid, signal.SIGSTOP)
    gate.open()
    store.wait_for("over")
    until(lambda: not alive(store.number_in("pid1")), "the work to end")
    assert second.poll() is None
    assert store.status(1) == "in_progress"
    os.kill(run.pid, signal.SIGCONT)
    assert store.ends(run) == 0
    assert store.ends(second) == 0
    assert store.lines("over") == ["1", "2"]
    assert store.outcomes(1) == ["completed"]


def test_another_runner_at_work_takes_over_when_one_dies(store, gate):
    begun(store, gate, 1)
    run = store.start()
    store.number_in("pid1")
    second = store.start()
    until(lambda: len(store.keepers()) == 2, "the second run")
    kill_runner(store, run)
    gate.open()
    assert store.ends(second) == 0
    assert store.lines("over") == ["1"]


def test_another_boot_or_host_is_not_signalled(store, gate):
    begun(store, gate, 1, maxRetries=1)
    store.write(2, "true")
    run = store.start()
    pid = store.number_in("pid1")
    store.wait_for_status(1, "in_progress")
    kill_runner(store, run)
    record = next((store.tasks / "run").glob("*.jsonl"))
    kill(store.keepers()[0].pid)
    kill(pid)
    store.wait_until_nothing_lives()
    # As after a restart of the machine: the same pid is somebody else now.
    bystander = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60")
    text = record.read_text().replace(f'"pid": {pid}', f'"pid": {bystander}')
    record.write_text(text.replace('"boot": "', '"boot": "another '))
    gate.open()
    store.run()
    assert store.outcomes(1) == ["lost", "completed"]
    assert alive(bystander)
    os.kill(bystander, signal.SIGKILL)
    os.waitpid(bystander, 0)


# Cleaning up


def test_cleaning_leaves_what_others_just_made(store):
    run = store.tasks / "run"
    store.write(5, attempts=[{"number": 1, "outcome": "failed"}])
    known = TaskManager(store.tasks).list()
    # After we looked and before we clean, another run begins an attempt, and runner and keeper are killed.
    names = ["5.2.beat", "5.2.in", "5.2.out", "5.2.report", "5.2.report.tmp", "6.1.out", "r9-9.1.jsonl"]
    for name in names:
        (run / name).touch()
    (run / "r9-9.1.jsonl").write_text('{"keeper": "r9-9.1"}\n{"task": 5, "attempt": 2, "exit": 0, "at": 1}\n')
    adopt.Survey(str(store.tasks)).clean(known)
    assert sorted(p.name for p in run.iterdir()) == names


@pytest.mark.parametrize("whose", ["runner", "keeper"])
def test_a_file_that_was_tidied_away_before_it_was_locked_is_made_again(store, monkeypatch, whose):
    """Another run looks between the making of the file and the taking of its lock."""
    survey = adopt.Survey(str(store.tasks))
    take, meddled = fcntl.flock, []

    def flock(fd: int, how: int) -> None:
        if how == fcntl.LOCK_EX and not meddled:
            meddled.append(True)
            survey.clean([])
        take(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    if whose == "runner":
        with Presence(str(store.tasks)) as presence:
            assert survey.runner_lives(presence.name)
    else:
        path = layout.keeper_path(str(store.tasks), "r9-9.1")
        fd = keeper._make_record(path)
        assert held(path)
        os.close(fd)
    assert meddled


def test_cleaning_removes_what_nobody_needs_any_more(store):
    run = store.tasks / "run"
    for name in ("5.1.in", "5.1.out", "5.1.report", "5.1.report.tmp", "r9-9.lock", "r9-9.1.jsonl", "r9-9.3.spare"):
        (run / name).touch()
    os.utime(run / "5.1.report.tmp", (0, 0))
    (run / "r9-9.1.jsonl").write_text('{"keeper": "r9-9.1"}\n{"task": 5, "attempt": 1, "exit": 0, "at": 1}\n')
    store.write(5, attempts=[{"number": 1, "outcome": "completed"}])
    lock = os.open(run / "r8-8.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    (run / "r8-8.1.spare").touch()
    adopt.Survey(str(store.tasks)).clean(TaskManager(store.tasks).list())
    os.close(lock)
    assert sorted(p.name for p in run.iterdir()) == ["r8-8.1.spare", "r8-8.lock"]


def test_what_a_task_in_progress_needs_is_kept(store, gate):
    begun(store, gate, 1)
    run = store.start()
    store.number_in("pid1")
    store.wait_for_status(1, "in_progress")
    kill_runner(store, run)
    (store.tasks / "run" / "1.1.out").touch()
    process = store.last(1)["process"]
    adopt.Survey(str(store.tasks)).clean(TaskManager(store.tasks).list())
    assert os.path.exists(layout.keeper_path(str(store.tasks), process))
    assert (store.tasks / "run" / "1.1.out").exists()
    gate.open()
