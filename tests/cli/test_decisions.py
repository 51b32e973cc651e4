"""`reopen`, `skip`, `cancel`, `hold` and `release`: what a person decides about tasks."""

from __future__ import annotations

import pytest

from tests.cli.driver import Keyboard


@pytest.fixture
def pair(tg: Keyboard) -> Keyboard:
    """A task and one that waits for it."""
    tg.ok("create", "a", "--name", "a")
    tg.ok("create", "b", "-b", "1")
    return tg


@pytest.mark.parametrize(
    ("verb", "status", "below", "word"),
    [
        ("skip", "skipped", "ready", "skipped"),
        ("cancel", "cancelled", "cancelled", "cancelled"),
        ("hold", "held", "blocked", "held"),
    ],
)
def test_what_a_decision_does_and_how_it_is_told(pair: Keyboard, verb: str, status: str, below: str, word: str) -> None:
    assert pair.ok(verb, "1", "--reason", "since\x1b").out == f"{word} 1 a\n"
    assert (pair.store.read(1)["status"], pair.store.read(1)["reason"]) == (status, "since\x1b")
    assert pair.json("get", "2")["state"] == below
    assert pair.ok(verb, "-q", "a").out == "1\n"
    assert [task["status"] for task in pair.json(verb, "1")] == [status]


def test_several_at_once_all_or_none(pair: Keyboard) -> None:
    for verb in ("skip", "cancel", "hold", "reopen"):
        assert "no task 9" in pair.refused(4, verb, "1", "9")
    assert pair.store.statuses() == {1: "pending", 2: "pending"}
    assert [task["id"] for task in pair.json("skip", "1", "2")] == [1, 2]


def test_a_settled_task_is_not_held(pair: Keyboard) -> None:
    pair.ok("complete", "1")
    assert "completed" in pair.refused(6, "hold", "1")


def test_a_cancelled_upstream_is_named_and_reopening_it_repairs_the_rest(pair: Keyboard) -> None:
    pair.ok("cancel", "1")
    assert pair.store.read(2)["cause"] == [1]
    pair.ok("reopen", "1")
    assert pair.store.statuses() == {1: "pending", 2: "pending"}


def test_what_a_person_cancelled_stays_cancelled(pair: Keyboard) -> None:
    pair.ok("cancel", "2")
    pair.ok("fail", "1")
    pair.ok("reopen", "1")
    assert pair.store.statuses() == {1: "pending", 2: "cancelled"}


def test_reopen_begins_a_new_visit_and_keeps_the_history(pair: Keyboard) -> None:
    pair.ok("claim", "1", "--owner", "ann")
    pair.ok("complete", "1", "--owner", "ann", "--result", "7")
    assert pair.ok("reopen", "1").out == "reopened 1 a\n"
    data = pair.store.read(1)
    assert (data["status"], data["visits"], len(data["attempts"])) == ("pending", 2, 1)
    assert "result" not in data
    assert pair.json("get", "2")["state"] == "blocked"


def test_reopen_the_failed_ones(pair: Keyboard) -> None:
    pair.ok("create", "c")
    pair.ok("fail", "1")
    pair.ok("fail", "3")
    assert [task["id"] for task in pair.json("reopen", "--failed")] == [1, 3]
    assert pair.json("reopen", "--failed") == []
    assert set(pair.store.statuses().values()) == {"pending"}


def test_reopen_what_is_below_as_well(pair: Keyboard) -> None:
    pair.ok("complete", "1")
    pair.ok("complete", "2")
    told = pair.ok("reopen", "1", "--downstream")
    assert told.err == ""
    assert pair.store.statuses() == {1: "pending", 2: "pending"}


def test_reopen_is_refused_while_in_progress(pair: Keyboard) -> None:
    pair.ok("claim", "1", "--owner", "ann")
    assert "in progress" in pair.refused(6, "reopen", "1")


def test_release_gives_back_what_was_claimed_or_held(pair: Keyboard) -> None:
    pair.ok("claim", "1", "--owner", "ann")
    assert "ann" in pair.refused(6, "release", "1")
    assert "ann" in pair.refused(6, "release", "1", "--owner", "bob")
    assert pair.ok("release", "1", "--owner", "ann", "--attempt", "1").out == "released 1 a\n"
    assert (pair.store.read(1)["status"], pair.store.read(1)["owner"]) == ("pending", "")
    pair.ok("hold", "1")
    assert pair.json("release", "1")[0]["state"] == "ready"
    assert "nothing to release" in pair.refused(6, "release", "1")


def test_release_by_force(pair: Keyboard) -> None:
    pair.ok("claim", "1", "--owner", "ann")
    assert pair.ok("release", "-q", "1", "--force").out == "1\n"
