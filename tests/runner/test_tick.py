"""What a run does with a graph: order, slots, targets, retries, and when it ends."""

from __future__ import annotations

import itertools
import json
import random
import sys
import time

import pytest

from taskgraph.core.fields import parse_time
from tests.conftest import clean_environment, until


def spans(store) -> dict[int, tuple[int, int]]:
    """When each task began and ended, as positions in the one file that all of them append to."""
    found: dict[int, list[int]] = {}
    for position, line in enumerate(store.lines("trace")):
        found.setdefault(int(line.split()[1]), []).append(position)
    return {task: (positions[0], positions[-1]) for task, positions in found.items()}


def traced(task: int, middle: str = ":") -> str:
    """A command that appends a line as it begins and a line as it ends."""
    return f"echo begin {task} >> trace; {middle}; echo end {task} >> trace"


def most_at_once(store) -> int:
    """How many commands ran at the same time at most."""
    running = [1 if line.startswith("begin") else -1 for line in store.lines("trace")]
    return max(itertools.accumulate(running))


# Order


def test_every_edge_is_respected(store):
    chance = random.Random(4)
    above = {n: chance.sample(range(1, n), min(n - 1, chance.randrange(4))) for n in range(1, 61)}
    for n, ups in above.items():
        store.write(n, traced(n), blockedBy=ups)
    store.run("-j", "4", "-q")
    found = spans(store)
    assert set(found) == set(above)
    for n, ups in above.items():
        for up in ups:
            assert found[up][1] < found[n][0], f"{n} began before {up} had ended"
    assert set(store.statuses().values()) == {"completed"}
    assert all(store.read(n)["blockedBy"] == [] for n in above)
    assert sorted(store.read(60)["unblockedBy"]) == sorted(above[60])


@pytest.mark.parametrize("slots", [1, 3])
def test_no_more_commands_at_a_time_than_asked_for_and_no_fewer_than_can_be(store, slots):
    # Each command stays until as many as may run at a time have begun, or all have.
    enough = f"while [ $(grep -c begin trace) -lt {slots} ]; do sleep 0.02; done; sleep 0.05"
    for n in range(1, 8):
        store.write(n, traced(n, enough))
    store.run("-j", str(slots))
    assert most_at_once(store) == slots


def test_many_slots_hold_many_commands(store):
    together = "while [ $(grep -c begin trace) -lt 50 ]; do sleep 0.05; done"
    for n in range(1, 51):
        store.write(n, traced(n, together))
    store.run("-j", "50")
    assert most_at_once(store) == 50


def test_priority_goes_first_then_id(store):
    for n, priority in enumerate([0, 5, -1, 5], 1):
        store.write(n, f"echo {n} >> order", priority=priority)
    store.run("-j", "1")
    assert store.lines("order") == ["2", "4", "1", "3"]


def test_a_finished_store_starts_nothing_again(store):
    store.write(1, "echo ran >> runs")
    store.run()
    store.run()
    assert store.lines("runs") == ["ran"]


# Targets, dry run, once, wait


def test_targets_run_with_all_they_wait_for_and_nothing_else(store):
    store.write(1, "echo 1 >> order")
    store.write(2, "echo 2 >> order", blockedBy=[1], name="middle")
    store.write(3, "echo 3 >> order", blockedBy=[2])
    store.write(4, "echo 4 >> order")
    store.run("middle")
    assert store.lines("order") == ["1", "2"]
    store.run("3", "4")
    assert sorted(store.lines("order")) == ["1", "2", "3", "4"]


def test_a_target_that_is_not_there_is_named(store):
    store.write(1, "echo 1 >> order")
    done = store.run("7", expect=4)
    assert "no task 7" in done.stderr
    assert store.lines("order") == []


def test_a_dry_run_names_the_order_and_starts_and_writes_nothing(store):
    store.write(1, "echo 1 >> order", blockedBy=[2])
    store.write(2, "echo 2 >> order")
    before = {p: p.read_bytes() for p in store.tasks.iterdir() if p.is_file()}
    done = store.run("--dry-run")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["2", "1"]
    assert [row["task"] for row in json.loads(store.run("-n", "--json").stdout)] == [2, 1]
    assert {p: p.read_bytes() for p in store.tasks.iterdir() if p.is_file()} == before
    assert store.lines("order") == []


@pytest.mark.parametrize("slots", ["1", "8"])
def test_once_runs_all_that_is_ready_at_the_beginning_and_nothing_that_becomes_so(store, slots):
    for n in range(1, 6):
        store.write(n, f"echo {n} >> order")
    store.write(6, "echo 6 >> order", blockedBy=[1])
    store.write(7, "echo 7 >> order; false", maxRetries=3)
    store.run("--once", "-j", slots, expect=3)
    assert sorted(store.lines("order")) == ["1", "2", "3", "4", "5", "7"]


def test_without_wait_a_manual_task_ends_the_run_and_is_named(store):
    store.write(1)
    store.write(2, "echo 2 >> order", blockedBy=[1])
    done = store.run(expect=3)
    assert "nothing more can start" in done.stdout
    assert store.lines("order") == []


def test_wait_goes_on_when_a_person_completes_a_manual_task(store):
    store.write(1)
    store.write(2, "echo 2 >> order", blockedBy=[1])
    store.write(3, "echo 3 >> order")
    run = store.start("--wait")
    store.wait_for_status(3, "completed")
    assert run.poll() is None
    assert store.cli("complete", "1").returncode == 0
    assert store.ends(run) == 0
    assert store.lines("order") == ["3", "2"]


def test_wait_goes_on_when_a_held_task_is_released(store):
    store.write(1, "echo 1 >> order", status="held")
    store.write(2, "echo 2 >> order")
    run = store.start("--wait")
    store.wait_for_status(2, "completed")
    assert run.poll() is None
    assert store.cli("release", "1").returncode == 0
    assert store.ends(run) == 0


def test_wait_does_not_wait_for_what_nobody_can_do(store):
    store.write(1, blockedBy=[99])
    store.run("--wait", expect=3)


# Failures


def test_keeps_going_beside_a_failure(store):
    store.write(1, "exit 9")
    store.write(2, "echo 2 >> order", blockedBy=[1])
    store.write(3, "echo 3 >> order")
    store.write(4, "echo 4 >> order", blockedBy=[3])
    done = store.run("-j", "1", expect=1)
    assert store.lines("order") == ["3", "4"]
    assert store.statuses() == {1: "failed", 2: "cancelled", 3: "completed", 4: "completed"}
    assert store.read(2)["cause"] == [1]
    assert "exit 9" in done.stdout


def test_fail_fast_ends_what_runs_and_gives_it_back(store, gate):
    store.write(1, "trap 'echo TERM >> heard; exit' TERM; echo up >> up; while :; do sleep 0.02; done")
    store.write(2, "while [ ! -e up ]; do sleep 0.02; done; exit 3")
    store.write(3, "echo 3 >> order", blockedBy=[1])
    store.run("--fail-fast", "-j", "2", expect=1)
    assert store.statuses() == {1: "pending", 2: "failed", 3: "pending"}
    assert store.outcomes(1) == ["interrupted"]
    assert store.lines("heard") == ["TERM"]


def test_the_summary_shows_the_last_lines_and_the_log_of_a_failure(store):
    store.write(1, "echo one; echo two; exit 4")
    done = store.run(expect=1)
    assert "| two" in done.stdout
    assert ".tasks/logs/1.1.log" in done.stdout


def test_on_github_the_summary_is_added_to_the_page(store, tmp_path):
    store.write(1, "echo told; exit 4")
    page = tmp_path / "page.md"
    store.run(expect=1, env=clean_environment(GITHUB_STEP_SUMMARY=str(page)))
    assert "told" in page.read_text()


@pytest.mark.parametrize(
    ("on_failure", "statuses", "code"),
    [
        ("fail", {1: "failed", 2: "cancelled", 3: "completed"}, 1),
        ("skip", {1: "skipped", 2: "completed", 3: "completed"}, 0),
        ("hold", {1: "held", 2: "pending", 3: "completed"}, 3),
        ("stop", {1: "failed", 2: "cancelled", 3: "pending"}, 1),
    ],
)
def test_what_is_done_when_no_retry_is_left(store, on_failure, statuses, code):
    store.write(1, "exit 3", onFailure=on_failure, maxRetries=1)
    store.write(2, "true", blockedBy=[1])
    store.write(3, "true", priority=-1)
    outcome = store.go(slots=1)
    assert outcome.exit_code == code
    assert store.statuses() == statuses
    assert store.outcomes(1) == ["failed", "failed"]


def test_a_critical_failure_lets_running_work_finish(store):
    store.write(1, "while [ ! -e up ]; do sleep 0.02; done; exit 3", onFailure="stop")
    store.write(2, "touch up; until [ -e failed ]; do sleep 0.02; done")
    store.write(3, "true", blockedBy=[2])
    run = store.start("-j", "2")
    store.wait_for_status(1, "failed")
    assert store.status(2) == "in_progress"
    (store.folder / "failed").touch()
    assert store.ends(run) == 1
    assert store.statuses() == {1: "failed", 2: "completed", 3: "pending"}


# Time


def test_max_time_ends_the_run_and_gives_back_what_runs(store):
    store.write(1, "exec sleep 60")
    store.write(2, "true", blockedBy=[1])
    began = time.monotonic()
    done = store.run("--max-time", "0.6", expect=3)
    assert 0.6 <= time.monotonic() - began < 5
    assert "0.6 s" in done.stdout
    assert store.statuses() == {1: "pending", 2: "pending"}
    assert store.outcomes(1) == ["interrupted"]


def test_max_time_also_ends_a_wait_for_people(store):
    store.write(1)
    began = time.monotonic()
    store.run("--wait", "--max-time", "0.5", expect=3)
    assert time.monotonic() - began < 5


# Retries


def gaps(store, task: int) -> list[float]:
    """Seconds between the end of each attempt and the start of the next."""
    attempts = store.shown(task)["attempts"]
    return [
        parse_time(after["startedAt"]) - parse_time(before["finishedAt"])
        for before, after in itertools.pairwise(attempts)
    ]


def test_retries_go_up_to_the_limit_and_no_further(store):
    store.write(1, "echo $TASKGRAPH_ATTEMPT >> tries; exit 1", maxRetries=3)
    outcome = store.go()
    assert outcome.exit_code == 1
    assert outcome.attempts == 4
    assert store.lines("tries") == ["1", "2", "3", "4"]
    assert [a["rung"] for a in store.shown(1)["attempts"]] == ["first", "retry", "retry", "retry"]


def test_a_retry_that_succeeds_recovers_the_task_and_frees_the_rest(store):
    store.write(1, '[ "$TASKGRAPH_ATTEMPT" = 2 ]', maxRetries=5)
    store.write(2, "true", blockedBy=[1])
    outcome = store.go()
    assert (outcome.exit_code, outcome.counts) == (0, {"completed": 2, "recovered": 1})


def test_delays_grow_by_the_factor_and_no_further_than_allowed(store):
    store.write(1, "exit 1", maxRetries=4, retryDelay=0.2, backoff=2, maxRetryDelay=0.5)
    store.go()
    found = gaps(store, 1)
    for gap, planned in zip(found, [0.2, 0.4, 0.5, 0.5], strict=True):
        assert planned - 0.005 <= gap < planned + 0.4, found


def test_work_goes_on_while_a_retry_waits(store):
    store.write(1, '[ "$TASKGRAPH_ATTEMPT" = 2 ]', maxRetries=1, retryDelay=0.6)
    for n in range(2, 6):
        store.write(n, "true", blockedBy=[n - 1] if n > 2 else [])
    store.go(slots=1)
    assert parse_time(store.shown(5)["finishedAt"]) < parse_time(store.last(1)["startedAt"])


def test_only_the_exit_codes_that_deserve_it_are_retried(store):
    store.write(1, "exit 75", maxRetries=2, retryExitCodes=[75])
    store.write(2, "exit 1", maxRetries=2, retryExitCodes=[75])
    store.write(3, "exit 127", maxRetries=1, retryExitCodes=[127])
    store.go()
    assert [len(store.outcomes(n)) for n in (1, 2, 3)] == [3, 1, 2]


def test_a_reopened_task_has_fresh_retries_and_numbers_that_go_on(store):
    store.write(1, "echo $TASKGRAPH_VISIT.$TASKGRAPH_ATTEMPT >> tries; exit 1", maxRetries=1)
    store.go()
    assert store.cli("reopen", "1").returncode == 0
    store.go()
    assert store.lines("tries") == ["1.1", "1.2", "2.3", "2.4"]


def test_a_clock_that_runs_slow_loses_no_retry(store):
    began = time.time()
    store.write(1, '[ "$TASKGRAPH_ATTEMPT" = 2 ]', maxRetries=1, retryDelay=0.5)
    # Half as fast as the monotonic clock: when the delay is over, this clock says that half of it is left.
    outcome = store.go(clock=lambda: began + (time.time() - began) / 2, max_time=10)
    assert outcome.exit_code == 0
    assert store.outcomes(1) == ["failed", "completed"]


def test_a_clock_that_steps_back_during_a_delay_does_not_prolong_it(store):
    stepped = []

    def clock() -> float:
        if store.path(1).exists() and '"retryIn"' in store.path(1).read_text():
            stepped.append(True)
        return time.time() - (6 * 3600 if stepped else 0)

    store.write(1, '[ "$TASKGRAPH_ATTEMPT" = 2 ]', maxRetries=1, retryDelay=0.3)
    began = time.monotonic()
    outcome = store.go(clock=clock, max_time=10)
    assert stepped
    assert outcome.exit_code == 0
    assert time.monotonic() - began < 9


def test_fields_hours_in_the_future_delay_nothing(store):
    ahead = "2999-01-01T00:00:00.000Z"
    store.write(1, "true", notBefore=ahead)
    store.write(2, "true", heartbeatAt=ahead, startedAt=ahead, updatedAt=ahead, createdAt=ahead)
    attempt = {"number": 1, "startedAt": ahead, "finishedAt": ahead, "outcome": "failed", "retryIn": 0.3}
    store.write(3, "true", notBefore=ahead, attempts=[attempt], maxRetries=2)
    began = time.monotonic()
    assert store.go(max_time=10).exit_code == 0
    assert time.monotonic() - began < 9


def test_two_delays_at_once_are_each_kept(store):
    store.write(1, '[ "$TASKGRAPH_ATTEMPT" -ge 3 ]', maxRetries=3, retryDelay=0.2, backoff=3)
    store.write(2, '[ "$TASKGRAPH_ATTEMPT" -ge 3 ]', maxRetries=3, retryDelay=0.5)
    assert store.go().exit_code == 0
    assert [round(gap, 1) for gap in gaps(store, 1)] == pytest.approx([0.2, 0.6], abs=0.25)
    assert [round(gap, 1) for gap in gaps(store, 2)] == pytest.approx([0.5, 0.5], abs=0.25)


def test_a_run_of_its_own_store_is_refused_inside_a_task(store):
    store.write(1, f"{sys.executable} -m taskgraph run; echo code $?")
    store.run()
    assert b"code 6" in store.log(1)
    assert b"inside task 1" in store.log(1)


def test_a_run_of_another_store_is_fine_inside_a_task(store, tmp_path):
    inner = tmp_path / "inner" / ".tasks"
    inner.mkdir(parents=True)
    (inner / "task_1.json").write_text('{"id": 1, "subject": "inner", "command": "echo $TASKGRAPH_DIR"}')
    store.write(1, f"{sys.executable} -m taskgraph -C {inner} run")
    store.run()
    assert (inner / "logs" / "1.1.log").read_text().strip() == str(inner)


def test_nothing_is_left_behind_in_the_run_folder(store):
    for n in range(1, 4):
        store.write(n, 'echo 1 > "$TASKGRAPH_OUTPUT"; touch "$TASKGRAPH_HEARTBEAT"', blockedBy=[n - 1] if n > 1 else [])
    store.run()
    store.run()
    store.wait_until_nothing_lives()
    left = [p.name for p in (store.tasks / "run").iterdir() if p.name != "no-inputs" and p.suffix not in (".jsonl",)]
    assert left == []
    until(lambda: not store.keepers(), "the keeper to go")
