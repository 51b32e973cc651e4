"""Several runners and other commands on one store while a run goes on."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from tests.conftest import alive, until

TASKGRAPH = f"{sys.executable} -m taskgraph"


def does(store, *arguments: str, expect: int = 0) -> str:
    """Run another command."""
    done = store.cli(*arguments)
    assert done.returncode == expect, done.stderr
    return done.stdout


def waiting(store, gate, task: int = 1, **fields) -> None:
    """Write a task that says it is up and waits at the gate."""
    store.write(task, f"echo $$ > pid{task}; {gate.wait}; echo {task} >> order", **fields)


def test_several_runners_start_each_task_once(store):
    for n in range(1, 61):
        store.write(n, f"echo {n} >> order", blockedBy=[n - 10] if n > 10 else [])
    runs = [store.start("-q", "-j", "2") for _ in range(4)]
    assert [store.ends(run) for run in runs] == [0] * 4
    assert sorted(map(int, store.lines("order"))) == list(range(1, 61))
    assert all(store.outcomes(n) == ["completed"] for n in range(1, 61))


def test_a_run_waits_for_the_attempt_of_another_and_goes_on_from_there(store, gate):
    waiting(store, gate)
    store.write(2, "echo 2 >> order", blockedBy=[1])
    first = store.start("1")
    store.number_in("pid1")
    second = store.start()
    until(lambda: len(store.keepers()) == 2, "the second run")
    gate.open()
    assert store.ends(first) == 0
    assert store.ends(second) == 0
    assert store.lines("order") == ["1", "2"]


def test_a_task_that_is_created_meanwhile_is_run_by_the_same_run(store, gate):
    waiting(store, gate)
    run = store.start("-j", "2")
    store.number_in("pid1")
    does(store, "create", "new", "--command", "echo new >> order")
    assert store.wait_for("order") == ["new"]
    gate.open()
    assert store.ends(run) == 0
    assert sorted(store.lines("order")) == ["1", "new"]


def test_a_task_that_is_created_by_a_running_task_is_run_by_the_same_run(store):
    store.write(1, f"{TASKGRAPH} create child --command 'echo child >> order'")
    store.run()
    assert store.lines("order") == ["child"]
    assert store.statuses() == {1: "completed", 2: "completed"}


def test_an_edge_that_is_drawn_meanwhile_holds(store, gate):
    waiting(store, gate)
    store.write(2, "echo 2 >> order", blockedBy=[1])
    store.write(3, "echo 3 >> order", blockedBy=[1])
    run = store.start("-j", "1")
    store.number_in("pid1")
    does(store, "update", "2", "--add-blocked-by", "3")
    gate.open()
    assert store.ends(run) == 0
    assert store.lines("order") == ["1", "3", "2"]


@pytest.mark.parametrize(("verb", "status"), [("cancel", "cancelled"), ("skip", "skipped"), ("hold", "held")])
def test_a_running_task_that_is_put_aside_is_stopped(store, gate, verb, status):
    waiting(store, gate, maxRetries=3)
    store.write(2, "echo 2 >> order", blockedBy=[1])
    waiting(store, gate, 3)
    run = store.start("-j", "2")
    pid = store.number_in("pid1")
    store.number_in("pid3")
    does(store, verb, "1")
    assert not alive(pid)
    assert store.status(1) == status
    gate.open()
    assert store.ends(run) == {"cancel": 0, "skip": 0, "hold": 3}[verb]
    assert store.status(2) == {"cancel": "cancelled", "skip": "completed", "hold": "pending"}[verb]
    assert store.outcomes(1) == ["interrupted"]
    assert "1" not in store.lines("order")


@pytest.mark.parametrize("verb", ["cancel", "skip", "hold"])
def test_without_a_runner_the_command_stops_the_process_itself(store, gate, verb):
    waiting(store, gate)
    run = store.start()
    pid = store.number_in("pid1")
    store.wait_for_status(1, "in_progress")
    run.kill()
    store.ends(run)
    assert alive(pid)
    does(store, verb, "1")
    assert not alive(pid)
    assert store.outcomes(1) == ["interrupted"]


def test_a_task_put_aside_and_reopened_meanwhile_runs_again_alone(store, gate):
    store.write(
        1, f"echo begin $TASKGRAPH_ATTEMPT >> trace; echo $$ > pid1; trap 'echo end >> trace; exit' TERM; {gate.wait}"
    )
    waiting(store, gate, 2)
    run = store.start("-j", "2")
    first = store.number_in("pid1")
    store.number_in("pid2")
    does(store, "cancel", "1")
    does(store, "reopen", "1")
    store.wait_for("trace", 3)
    assert store.lines("trace") == ["begin 1", "end", "begin 2"]
    assert not alive(first)
    gate.open()
    assert store.ends(run) == 0
    assert store.outcomes(1) == ["interrupted", "completed"]


def test_a_failed_task_that_is_reopened_meanwhile_runs_again(store, gate):
    store.write(1, "[ -e mended ]")
    store.write(2, "echo 2 >> order", blockedBy=[1])
    waiting(store, gate, 3)
    run = store.start("-j", "2")
    store.wait_for_status(1, "failed")
    store.number_in("pid3")
    (store.folder / "mended").touch()
    does(store, "reopen", "1")
    store.wait_for_status(2, "completed")
    gate.open()
    assert store.ends(run) == 0


def test_a_hold_before_the_start_holds_and_a_release_lets_go(store, gate):
    waiting(store, gate)
    store.write(2, "echo 2 >> order", blockedBy=[1])
    run = store.start("--wait")
    store.number_in("pid1")
    does(store, "hold", "2")
    gate.open()
    store.wait_for_status(1, "completed")
    assert store.status(2) == "held"
    assert run.poll() is None
    does(store, "release", "2")
    assert store.ends(run) == 0
    assert store.lines("order") == ["1", "2"]


def test_a_hand_edit_is_seen(store, gate):
    waiting(store, gate)
    store.write(2, "echo old >> order", blockedBy=[1])
    run = store.start("-j", "2")
    store.number_in("pid1")
    store.write(2, "echo edited >> order", blockedBy=[1])
    store.write(7, "echo seven >> order")
    store.wait_for("order")
    gate.open()
    assert store.ends(run) == 0
    assert store.lines("order") == ["seven", "1", "edited"]


def test_a_hand_edit_of_a_running_task_keeps_both_its_words_and_its_end(store, gate):
    waiting(store, gate)
    run = store.start()
    store.number_in("pid1")
    until(lambda: store.read(1).get("status") == "in_progress", "the start in the file")
    data = store.read(1)
    data["subject"] = "edited while it ran"
    data["mood"] = "unknown field"
    store.path(1).write_text(json.dumps(data))
    gate.open()
    assert store.ends(run) == 0
    assert store.read(1)["subject"] == "edited while it ran"
    assert store.read(1)["mood"] == "unknown field"
    assert store.read(1)["status"] == "completed"


def test_a_hand_edit_that_forgets_the_running_attempt_leads_to_no_second_copy(store, gate):
    script = (
        "echo begin $TASKGRAPH_ATTEMPT >> trace; echo up >> up; trap 'sleep 0.3; echo end >> trace; exit' TERM; "
        f"{gate.wait}; echo end >> trace"
    )
    store.write(1, script)
    run = store.start("-j", "4")
    store.wait_for("up")
    until(lambda: store.read(1).get("status") == "in_progress", "the start in the file")
    # An editor that was opened before the start saves what it knows.
    store.write(1, script, subject="from an old editor")
    store.wait_for("up", 2)
    assert store.lines("trace") == ["begin 1", "end", "begin 2"]
    gate.open()
    assert store.ends(run) == 0
    assert store.status(1) == "completed"
    assert store.last(1)["number"] == 2


def test_a_running_task_whose_file_is_broken_for_a_while_goes_on(store, gate):
    waiting(store, gate)
    run = store.start("-j", "2")
    pid = store.number_in("pid1")
    until(lambda: store.read(1).get("status") == "in_progress", "the start in the file")
    whole = store.path(1).read_bytes()
    store.path(1).write_bytes(whole[: len(whole) // 2])
    # The run looks at the file: it says so in its next step, and a new task shows that it has stepped.
    store.write(9, "echo nine >> order")
    store.wait_for("order")
    assert alive(pid)
    store.path(1).write_bytes(whole)
    store.write(10, "echo ten >> order")
    store.wait_for("order", 2)
    assert alive(pid)
    gate.open()
    assert store.ends(run) == 0
    assert store.outcomes(1) == ["completed"]


def test_an_end_that_comes_while_the_file_is_broken_is_taken_over_later(store, gate):
    waiting(store, gate)
    run = store.start()
    store.number_in("pid1")
    until(lambda: store.read(1).get("status") == "in_progress", "the start in the file")
    whole = store.path(1).read_bytes()
    store.path(1).write_bytes(b"{")
    store.write(9, "echo nine >> order")
    gate.open()
    assert store.ends(run) == 5
    # A run beside the broken file must not throw away what is known of its end.
    store.run(expect=5)
    store.path(1).write_bytes(whole)
    store.run()
    assert store.outcomes(1) == ["completed"]
    assert store.lines("order").count("1") == 1


def test_a_running_task_completed_by_force_is_stopped(store, gate):
    waiting(store, gate)
    store.write(2, "echo 2 >> order", blockedBy=[1])
    run = store.start()
    pid = store.number_in("pid1")
    store.wait_for_status(1, "in_progress")
    assert "being run" in store.cli("complete", "1").stderr
    does(store, "complete", "1", "--force")
    assert store.ends(run) == 0
    assert not alive(pid)
    assert store.lines("order") == ["2"]


def test_with_wait_the_run_ends_when_a_claimed_task_is_completed(store):
    store.write(1)
    store.write(2, "echo 2 >> order", blockedBy=[1])
    does(store, "claim", "1", "--owner", "ann")
    run = store.start("--wait")
    until(lambda: store.keepers(), "the run")
    does(store, "complete", "1", "--owner", "ann", "--result", "4")
    assert store.ends(run) == 0
    assert store.lines("order") == ["2"]


def test_with_wait_a_claim_whose_holder_is_silent_lapses(store):
    store.write(1, stallTimeout=0.5)
    store.write(2, "echo 2 >> order")
    does(store, "claim", "1", "--owner", "ann")
    run = store.start("--wait")
    store.wait_for_status(1, "pending")
    assert store.shown(1)["owner"] == ""
    run.terminate()
    assert store.ends(run) == 143


def test_a_target_that_gets_a_new_upstream_meanwhile_takes_it_along(store, gate):
    waiting(store, gate)
    store.write(2, "echo 2 >> order", blockedBy=[1])
    store.write(3, "echo 3 >> order")
    run = store.start("2")
    store.number_in("pid1")
    does(store, "update", "2", "--add-blocked-by", "3")
    gate.open()
    assert store.ends(run) == 0
    assert sorted(store.lines("order")) == ["1", "2", "3"]
    assert store.lines("order")[-1] == "2"


def test_a_run_whose_folders_are_tidied_away_loses_nothing(store, gate):
    store.write(1, f"echo up >> up; {gate.wait}; echo 1 >> order")
    store.write(2, "echo 2 >> order", blockedBy=[1])
    run = store.start("-j", "2")
    store.wait_for("up")
    shutil.rmtree(store.tasks / "run")
    until(lambda: list((store.tasks / "run").glob("r*.lock")), "the runner to make itself known again")
    gate.open()
    assert store.ends(run) == 0
    assert store.lines("order") == ["1", "2"]
    assert store.status(2) == "completed"


@pytest.mark.parametrize("how", ["verbs", "a stale copy"])
def test_beside_another_run_too_nothing_starts_before_all_of_the_last_attempt_has_gone(store, how):
    hidden = "trap '' TERM; for i in 1 2 3 4 5 6 7 8 9 10; do echo 1 >> order; sleep 0.1; done"
    script = (
        "[ -s order ] && { echo 2 >> order; exit; }; "
        f'env -i PATH="$PATH" setsid sh -c "{hidden}" > /dev/null 2>&1 & sleep 0.1; exec sleep 30'
    )
    store.write(1, script)
    old = store.path(1).read_text()
    store.write(9)
    runs = [store.start("--wait", "-j", "1")]
    store.wait_for("order")
    runs.append(store.start("--wait", "-j", "1"))
    until(lambda: len(store.keepers()) == 2, "the second run")
    until(lambda: store.read(1).get("status") == "in_progress", "the start in the file")
    if how == "verbs":
        does(store, "cancel", "1")
        does(store, "reopen", "1")
    else:
        store.path(1).write_text(old)
    store.wait_for_status(1, "completed")
    does(store, "complete", "9")
    assert [store.ends(run) for run in runs] == [0, 0]
    assert store.lines("order") == ["1"] * (len(store.lines("order")) - 1) + ["2"]
    assert len(store.lines("order")) > 2


def test_two_runs_whose_folders_are_tidied_away_leave_each_other_alone(store, gate):
    for n in (1, 2):
        store.write(n, f"echo up >> up; {gate.wait}; echo {n} >> order")
    runs = [store.start("-j", "1") for _ in range(2)]
    store.wait_for("up", 2)
    for _ in range(2):
        shutil.rmtree(store.tasks / "run")
        until(lambda: len(list((store.tasks / "run").glob("r*.lock"))) == 2, "both to make themselves known again")
    gate.open()
    assert [store.ends(run) for run in runs] == [0, 0]
    assert [store.outcomes(n) for n in (1, 2)] == [["completed"]] * 2


def test_a_keeper_that_was_stopped_is_woken_when_its_work_is_killed(store):
    store.write(1, "kill -STOP $PPID; touch up; sleep 60", timeout=0.5)
    store.go(grace=0.2)
    assert store.outcomes(1) == ["timeout"]


def test_no_second_copy_starts_beside_an_orphan_that_writes_to_no_log_and_was_forgotten_by_hand(store):
    command = "exec > /dev/null 2>&1; echo begin >> trace; echo up >> up; sleep 1.5; echo end >> trace"
    store.write(1, command)
    run = store.start()
    store.wait_for("up")
    until(lambda: store.read(1).get("status") == "in_progress", "the start in the file")
    run.kill()
    run.wait()
    for keeper in store.keepers():
        keeper.kill()
    told = {**store.read(1), "status": "pending"}
    store.path(1).write_text(json.dumps(told))
    store.run(expect=0)
    assert store.lines("trace") == ["begin", "end", "begin", "end"]
