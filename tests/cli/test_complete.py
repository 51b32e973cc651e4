"""`complete` and `fail`: reports on tasks."""

from __future__ import annotations

import time

import pytest

from tests.cli.driver import Keyboard
from tests.conftest import StoreBox


def test_completing_tells_those_that_wait(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("create", "b", "-b", "1")
    assert tg.ok("complete", "1").out == "completed 1 a\n"
    assert (tg.store.read(2)["blockedBy"], tg.store.read(2)["unblockedBy"]) == ([], [1])
    assert tg.ok("complete", "-q", "2").out == "2\n"


@pytest.mark.parametrize("text", ['{"a": [1, null]}', "7", '"text"', "[]", "false", '"\\ud83d"', "null"])
def test_a_result_is_kept(tg: Keyboard, text: str) -> None:
    import json

    tg.ok("create", "a")
    told = tg.json("complete", "1", "--result", text)
    assert told.get("result") == json.loads(text)


def test_what_is_no_json_is_no_result(tg: Keyboard) -> None:
    tg.ok("create", "a")
    for text in ("{", "", "NaN", "[" * 100_000):
        assert "--result" in tg.refused(2, "complete", "1", "--result", text)[:400]
    assert tg.store.status(1) == "pending"


def test_a_blocked_task_is_not_completed(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("create", "b", "-b", "1")
    assert tg.json("complete", "2", code=6)["error"]["blockedBy"] == [1]
    tg.ok("complete", "2", "--force")
    assert tg.store.status(2) == "completed"


def test_only_the_owner_reports(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("claim", "1", "--owner", "ann")
    for verb in ("complete", "fail"):
        assert "ann" in tg.refused(6, verb, "1")
        assert "ann" in tg.refused(6, verb, "1", "--owner", "bob")
        assert "no longer current" in tg.refused(6, verb, "1", "--owner", "ann", "--attempt", "2")
    tg.ok("complete", "1", "--owner", "ann", "--attempt", "1")


def test_a_failed_attempt_is_followed_by_another_while_there_are_retries(tg: Keyboard) -> None:
    tg.ok("create", "a", "--max-retries", "1")
    tg.ok("create", "b", "-b", "1")
    tg.ok("claim", "1", "--owner", "ann")
    assert tg.ok("fail", "1", "--owner", "ann", "--reason", "no luck\x1b").out == "failed, now pending: 1 a\n"
    tg.ok("claim", "1", "--owner", "bob")
    assert tg.ok("fail", "1", "--owner", "bob").out == "failed 1 a\n"
    assert tg.store.statuses() == {1: "failed", 2: "cancelled"}
    assert tg.store.read(1)["attempts"][0]["error"] == "no luck\x1b"


def test_a_manual_failure_is_mended_by_a_persons_word(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("create", "b", "-b", "1")
    assert tg.json("fail", "1", "--reason", "why")["reason"] == "why"
    tg.ok("complete", "1")
    assert tg.store.statuses() == {1: "completed", 2: "pending"}


def test_outside_of_a_task_there_is_no_default(tg: Keyboard) -> None:
    for verb in ("complete", "fail", "heartbeat"):
        assert "name a task" in tg.refused(2, verb)


def test_inside_a_task_the_report_is_kept_and_the_exit_settles_it(store: StoreBox) -> None:
    program = " ".join(store.command())
    store.write(1, f"{program} heartbeat && {program} complete --result '[7]' && {program} get 1 -h; echo ran >> ran")
    store.write(2, f"{program} complete --result 1; exit 3")
    store.write(3, f"{program} fail --reason 'no luck'")
    store.run(expect=1)
    assert store.statuses() == {1: "completed", 2: "failed", 3: "failed"}
    assert store.read(1)["result"] == [7]
    assert "no luck" in store.read(3)["reason"]
    assert b"is settled when its command ends" in store.log(1)


@pytest.mark.parametrize(
    ("said", "code", "status"),
    [("completed", 3, "failed"), ("failed", 0, "failed"), ("completed", 0, "completed")],
)
def test_inside_a_task_a_status_that_is_set_is_a_report_too(store: StoreBox, said: str, code: int, status: str) -> None:
    store.write(1, f"{' '.join(store.command())} update 1 --status {said}; echo on >> on; exit {code}")
    store.run(expect=status == "failed")
    assert (store.status(1), store.lines("on")) == (status, ["on"])


def test_inside_a_task_one_report_after_the_other_keeps_the_result(store: StoreBox) -> None:
    program = " ".join(store.command())
    store.write(1, f"{program} complete --result '[1]'; {program} update 1 --status completed --force; echo $? > code")
    store.write(2, f"{program} complete --result '[1]'; {program} fail --reason no")
    store.write(3, f"{program} complete --result '[1]'; {program} complete --result '[2]'")
    began = time.monotonic()
    store.run(expect=1)
    assert time.monotonic() - began < 8
    assert [store.read(i).get("result") for i in (1, 2, 3)] == [[1], None, [2]]
    assert store.lines("code") == ["0"]


def test_inside_a_task_a_run_of_the_same_store_is_refused(store: StoreBox) -> None:
    store.write(1, f"{' '.join(store.command())} run; echo $? > code")
    store.run()
    assert store.lines("code") == ["6"]
