"""`taskgraph update`."""

from __future__ import annotations

import pytest

from tests.cli.driver import Keyboard


def test_answers_with_what_was_changed(tg: Keyboard) -> None:
    tg.ok("create", "a")
    assert tg.ok("update", "1", "--subject", "b").out == "updated 1 b\n"
    assert tg.ok("update", "1", "-q", "--subject", "c").out == "1\n"
    assert tg.json("update", "1", "--subject", "d")["subject"] == "d"


def test_every_field_has_a_flag(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("update", "1", "--subject", "s", "-d", "at length", "--name", "n", "--owner", "ann", "--label", "a",
          "--note", "one", "--set", "k=1", "--priority", "-5", "--command", "true", "--cwd", "sub", "--env", "K=V",
          "--timeout", "60", "--stall-timeout", "5", "--max-retries", "2", "--retry-delay", "0.5", "--backoff", "2",
          "--max-retry-delay", "9", "--retry-exit-codes", "75", "--on-failure", "skip",
          "--trigger-rule", "one_failed")  # fmt: skip
    tg.ok("update", "1", "--note", "two", "--label", "b", "--label", "a", "--set", "j=null")
    data = tg.store.read(1)
    for key in ("createdAt", "updatedAt"):
        data.pop(key, None)
    assert data == {
        "id": 1, "subject": "s", "description": "at length", "status": "pending", "blockedBy": [], "blocks": [],
        "owner": "ann", "name": "n", "labels": ["a", "b"], "notes": ["one", "two"], "metadata": {"k": 1, "j": None},
        "triggerRule": "one_failed", "command": "true", "cwd": "sub", "env": {"K": "V"}, "priority": -5,
        "timeout": 60, "stallTimeout": 5, "maxRetries": 2, "retryDelay": 0.5, "backoff": 2, "maxRetryDelay": 9,
        "retryExitCodes": [75], "onFailure": "skip",
    }  # fmt: skip


def test_fields_can_be_taken_out(tg: Keyboard) -> None:
    tg.ok("create", "a", "--timeout", "5", "--label", "x", "--name", "n")
    tg.ok("update", "1", "--unset", "timeout", "--unset", "labels", "--unset", "name")
    assert not {"timeout", "labels", "name"} & set(tg.store.read(1))
    assert "'blocks'" in tg.refused(2, "update", "1", "--unset", "blocks")


def test_the_command_may_stand_behind_two_dashes(tg: Keyboard) -> None:
    tg.ok("create", "a", "--command", "old")
    tg.ok("update", "1", "--", "prog", "a b", "")
    assert tg.store.read(1)["command"] == ["prog", "a b", ""]


def test_edges_come_and_go_on_both_sides(tg: Keyboard) -> None:
    for subject in "abc":
        tg.ok("create", subject)
    tg.ok("update", "3", "--add-blocked-by", "1,2")
    tg.ok("update", "1", "--add-blocks", "2")
    assert [tg.store.read(i)["blocks"] for i in (1, 2, 3)] == [[3, 2], [3], []]
    assert [tg.store.read(i)["blockedBy"] for i in (1, 2, 3)] == [[], [1], [1, 2]]
    tg.ok("update", "3", "--remove-blocked-by", "1")
    tg.ok("update", "1", "--remove-blocks", "2")
    assert [tg.store.read(i)["blocks"] for i in (1, 2, 3)] == [[], [3], []]
    assert [tg.store.read(i)["blockedBy"] for i in (1, 2, 3)] == [[], [], [2]]
    assert "not blocked by 1" in tg.refused(4, "update", "3", "--remove-blocked-by", "1")
    assert "does not block 2" in tg.refused(4, "update", "1", "--remove-blocks", "2")


def test_several_changes_are_all_made_or_none(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("create", "b", "-b", "1")
    before = [tg.store.path(i).read_bytes() for i in (1, 2)]
    for more in (["--add-blocked-by", "2"], ["--add-blocked-by", "9"], ["--timeout", "-1"], ["--name", "1"]):
        told = tg("update", "1", "--subject", "changed", "--note", "n", *more)
        assert told.code in (2, 4)
        assert [tg.store.path(i).read_bytes() for i in (1, 2)] == before


@pytest.mark.parametrize(
    ("status", "file"),
    [
        ("in_progress", "in_progress"), ("In-Progress", "in_progress"), ("completed", "completed"),
        ("failed", "failed"), ("skipped", "skipped"), ("cancelled", "cancelled"), ("canceled", "cancelled"),
        ("held", "held"), ("pending", "pending"),
    ],
)  # fmt: skip
def test_a_status_is_set_by_the_verb_that_leads_there(tg: Keyboard, status: str, file: str) -> None:
    tg.ok("create", "a")
    assert tg.json("update", "1", "--status", status)["status"] == file
    assert tg.store.status(1) == file


def test_a_status_can_be_left_again(tg: Keyboard) -> None:
    tg.ok("create", "a")
    for status in ("in_progress", "pending", "held", "pending", "completed", "pending", "failed", "completed"):
        tg.ok("update", "1", "--status", status)
        assert tg.store.status(1) == status


def test_what_is_no_status_is_refused_before_anything_is_changed(tg: Keyboard) -> None:
    tg.ok("create", "a")
    before = tg.store.path(1).read_bytes()
    assert "'ready'" in tg.refused(2, "update", "1", "--note", "n", "--status", "ready")
    assert "nothing to change" in tg.refused(2, "update", "1")
    assert tg.store.path(1).read_bytes() == before


@pytest.mark.parametrize("status", ["in_progress", "completed"])
def test_a_blocked_task_neither_starts_nor_completes(tg: Keyboard, status: str) -> None:
    tg.ok("create", "a")
    tg.ok("create", "b", "-b", "1")
    assert "blocked by 1" in tg.refused(6, "update", "2", "--status", status)
    assert tg.store.status(2) == "pending"
    tg.ok("update", "2", "--status", status, "--force")
    assert tg.store.status(2) == status
    assert tg.store.events()[-1]["forced"] is True


def test_a_task_of_somebody_else_is_not_completed(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("claim", "1", "--owner", "ann")
    assert "ann" in tg.refused(6, "update", "1", "--status", "completed", "--owner", "bob")
    assert "no longer current" in tg.refused(6, "update", "1", "--status", "completed", "--attempt", "7")
    tg.ok("update", "1", "--status", "completed", "--owner", "ann", "--attempt", "1")


def test_reopening_says_who_is_out_of_date(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("create", "b", "-b", "1")
    tg.ok("complete", "1")
    tg.ok("complete", "2")
    told = tg.ok("update", "1", "--status", "pending")
    assert "2 was done" in told.err
    assert "--downstream" in told.err
    assert tg.json("get", "2")["stale"] is True


def test_a_name_that_is_taken_is_refused(tg: Keyboard) -> None:
    tg.ok("create", "a", "--name", "a")
    tg.ok("create", "b", "--name", "b")
    assert "task 1" in tg.refused(6, "update", "b", "--name", "a")
    tg.ok("update", "b", "--name", "b")
