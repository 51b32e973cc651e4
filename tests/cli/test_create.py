"""`taskgraph create`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.driver import Keyboard

ODD = ["hey", "hello world", "$HOME", "a;b", "it's", "", "*", "new\nline", "🚀"]
"""Nine arguments that a shell would change."""


def test_answers_with_the_id(tg: Keyboard) -> None:
    assert tg.ok("create", "Set up").out == "created 1 Set up\n"
    assert tg.ok("create", "-q", "Next").out == "2\n"
    assert tg.json("create", "Third")["id"] == 3


def test_the_file_holds_what_was_given_and_no_more(tg: Keyboard) -> None:
    tg.ok("create", "Set up", "--name", "setup", "-d", "at length", "--owner", "ann", "--label", "a", "--label", "b",
          "--note", "n", "--set", "k=[1]", "--set", "t=text", "--priority", "5", "--command", "echo a && b",
          "--cwd", "sub", "--env", "K=V=W", "--timeout", "60", "--stall-timeout", "0", "--max-retries", "2",
          "--retry-delay", "0.5", "--backoff", "2", "--max-retry-delay", "9", "--retry-exit-codes", "1,75",
          "--on-failure", "hold", "--trigger-rule", "all_done")  # fmt: skip
    data = tg.store.read(1)
    for key in ("createdAt", "updatedAt"):
        data.pop(key, None)
    assert data == {
        "id": 1, "subject": "Set up", "description": "at length", "status": "pending", "blockedBy": [], "blocks": [],
        "owner": "ann", "name": "setup", "labels": ["a", "b"], "notes": ["n"], "metadata": {"k": [1], "t": "text"},
        "triggerRule": "all_done", "command": "echo a && b", "cwd": "sub", "env": {"K": "V=W"}, "priority": 5,
        "timeout": 60, "stallTimeout": 0, "maxRetries": 2, "retryDelay": 0.5, "backoff": 2, "maxRetryDelay": 9,
        "retryExitCodes": [1, 75], "onFailure": "hold",
    }  # fmt: skip
    tg.ok("create", "bare")
    bare = set(tg.store.read(2)) - {"createdAt", "updatedAt"}
    assert bare == {"id", "subject", "description", "status", "blockedBy", "blocks", "owner"}


def test_arguments_behind_two_dashes_stay_as_they_are(tg: Keyboard) -> None:
    tg.ok("create", "x", "--max-retries", "1", "--", *ODD)
    assert tg.store.read(1)["command"] == ODD
    assert tg.json("get", "1")["command"] == ODD
    # A flag, and another pair of dashes, belong to the command too.
    tg.ok("create", "y", "--", "prog", "--json", "-q", "--", "-C")
    assert tg.store.read(2)["command"] == ["prog", "--json", "-q", "--", "-C"]


def test_a_command_is_given_in_one_way_only(tg: Keyboard) -> None:
    assert "not both" in tg.refused(2, "create", "x", "--command", "a", "--", "b")
    assert "nothing behind" in tg.refused(2, "create", "x", "--")


def test_edges_are_written_on_both_sides(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("create", "b")
    tg.ok("create", "c", "-b", "1,2")
    tg.ok("create", "d", "--blocked-by", "1", "--blocked-by", "#2", "--blocks", "3")
    assert [tg.store.read(i)["blocks"] for i in (1, 2, 3, 4)] == [[3, 4], [3, 4], [], [3]]
    assert [tg.store.read(i)["blockedBy"] for i in (3, 4)] == [[1, 2, 4], [1, 2]]


def test_an_edge_to_a_settled_task_does_not_block(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("complete", "1")
    assert tg.json("create", "b", "-b", "1")["state"] == "ready"
    assert (tg.store.read(2)["blockedBy"], tg.store.read(2)["unblockedBy"]) == ([], [1])


def test_a_cycle_through_a_new_task_is_refused(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("create", "b", "-b", "1")
    assert tg.json("create", "c", "-b", "2", "--blocks", "1", code=2)["error"]["kind"] == "cycle"
    assert "1 → 2 → the new task → 1" in tg.refused(2, "create", "c", "-b", "2", "--blocks", "1")
    assert len(tg.json("list")) == 2


@pytest.mark.parametrize("subject", ["", "  ", "\n"])
def test_a_task_needs_a_subject(tg: Keyboard, subject: str) -> None:
    assert "needs a subject" in tg.refused(2, "create", subject)
    assert tg.json("list") == []
    tg.ok("create", "a")
    assert "needs a subject" in tg.refused(2, "update", "1", "--subject", subject)
    assert tg.store.read(1)["subject"] == "a"


def test_a_task_that_does_not_exist_cannot_be_waited_for(tg: Keyboard) -> None:
    assert "no task 9" in tg.refused(4, "create", "x", "-b", "9")
    assert "no task nobody" in tg.refused(4, "create", "x", "-b", "nobody")
    assert tg.json("list") == []


def test_a_name_is_given_once(tg: Keyboard) -> None:
    tg.ok("create", "a", "--name", "setup")
    assert "'setup'" in tg.refused(6, "create", "b", "--name", "setup")
    again = tg.json("create", "b", "--name", "setup", "--exist-ok")
    assert (again["id"], again["subject"]) == (1, "a")
    assert len(tg.json("list")) == 1


@pytest.mark.parametrize("name", ["1a", "-a", "a b", "a/b", "", "a,b", "é!"])
def test_what_is_no_name_is_refused(tg: Keyboard, name: str) -> None:
    told = tg("create", "x", f"--name={name}")
    assert told.code == 2
    assert tg.json("list") == []


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--timeout", "-1"), ("--timeout", "nan"), ("--timeout", "inf"), ("--stall-timeout", "-0.1"),
        ("--max-retries", "-1"), ("--retry-delay", "-1"), ("--backoff", "0.5"), ("--max-retry-delay", "-1"),
        ("--retry-exit-codes", "a"), ("--retry-exit-codes", "256"), ("--on-failure", "shrug"),
        ("--trigger-rule", "sometimes"), ("--env", "K"), ("--env", "=V"), ("--set", "k"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_meant_is_refused(tg: Keyboard, flag: str, value: str) -> None:
    tg.refused(2, "create", "x", f"{flag}={value}")
    assert tg.json("list") == []


def test_makes_the_store_where_there_is_none(tg: Keyboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "n").mkdir()
    monkeypatch.chdir(tmp_path / "n")
    tg.ok("create", "first")
    assert (tmp_path / "n" / ".tasks" / "task_1.json").exists()


def test_hostile_subjects_are_kept_and_shown_harmless(tg: Keyboard) -> None:
    subject = "new\nline\ttab \x1b[31mred \u2028 \udcff 🚀 é"
    told = tg.ok("create", subject)
    assert told.out == "created 1 new\\nline\\ttab \\x1b[31mred \\u2028 \\udcff 🚀 é\n"
    assert tg.json("get", "1")["subject"] == subject
    assert "🚀 é" in tg.store.path(1).read_text()


def test_a_worker_can_be_named(tg: Keyboard) -> None:
    assert tg.json("create", "a", "--worker", "painter")["worker"] == "painter"
    assert tg.json("update", "1", "--worker", "sculptor")["worker"] == "sculptor"
