"""Exit codes of runs, as the table has them."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize(
    ("tasks", "code"),
    [
        ({}, 0),
        ({1: {"command": "true"}}, 0),
        ({1: {"command": "false"}}, 1),
        ({1: {"status": "skipped", "waived": True}, 2: {"command": "true", "blockedBy": [1]}}, 0),
        ({1: {"status": "cancelled"}}, 0),
        ({1: {"status": "cancelled"}, 2: {"command": "true", "blockedBy": [1]}}, 0),
        ({1: {"status": "cancelled"}, 2: {"command": "false"}}, 1),
        ({1: {"status": "failed"}}, 1),
        ({1: {}}, 3),
        ({1: {"status": "held"}}, 3),
        ({1: {"command": "true", "blockedBy": [9]}}, 3),
        ({1: {"command": "true", "blockedBy": [2]}, 2: {"command": "true", "blockedBy": [1]}}, 3),
        ({1: {}, 2: {"command": "false"}}, 1),
    ],
    ids=[
        "empty", "completed", "failed", "skipped by a person", "cancelled by a person", "what ended because of that",
        "a failure beside it", "failed before", "manual", "held", "a missing task", "a cycle", "failure before waiting",
    ],
)  # fmt: skip
def test_exit_code(store, tasks, code):
    for task_id, fields in tasks.items():
        store.write(task_id, **fields)
    assert store.go().exit_code == code


def test_a_file_that_cannot_be_read_wins_over_failures(store):
    store.write(1, "false")
    store.path(2).write_text("{ no json")
    done = store.run(expect=5)
    assert "task_2.json" in done.stdout + done.stderr
    assert store.status(1) == "failed"


def test_only_targets_are_judged(store):
    store.write(1, "true")
    store.write(2, "false")
    store.write(3)
    assert store.go(targets=[1]).exit_code == 0
    assert store.go(targets=[1, 3]).exit_code == 3
    assert store.go(targets=[2, 3]).exit_code == 1


def test_an_upstream_that_failed_makes_its_target_a_failure(store):
    store.write(1, "false")
    store.write(2, "true", blockedBy=[1])
    assert store.go(targets=[2]).exit_code == 1


def test_the_outcome_as_json(store):
    store.write(1, "true")
    store.write(2, "false")
    store.write(3)
    found = json.loads(store.run("--json", expect=1).stdout)
    assert found["exitCode"] == 1
    assert found["counts"] == {"completed": 1, "failed": 1, "pending": 1}
    assert (found["failed"], found["waiting"], found["attempts"]) == ([2], [3], 2)


def test_an_unreadable_file_blocks_its_dependents_and_nothing_else(store):
    store.path(1).write_text('{"id": 1, "subject": ')
    store.write(2, "echo 2 >> order", blockedBy=[1])
    store.write(3, "echo 3 >> order")
    before = store.path(1).read_bytes()
    store.run(expect=5)
    assert store.lines("order") == ["3"]
    assert store.statuses() == {2: "pending", 3: "completed"}
    assert store.path(1).read_bytes() == before


def test_a_missing_upstream_blocks_until_it_is_there(store):
    store.write(2, "echo 2 >> order", blockedBy=[1])
    done = store.run(expect=3)
    assert "1" in done.stdout
    store.write(1, "echo 1 >> order")
    store.run()
    assert store.lines("order") == ["1", "2"]
