"""`status`, `explain` and `events`: where the graph stands, and how it came there."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.cli.driver import Keyboard
from tests.conftest import StoreBox, clean_environment, until


def test_an_empty_store(tg: Keyboard) -> None:
    assert tg.ok("status").out == "no tasks\n"
    assert tg.json("status")["tasks"] == 0
    assert tg.ok("events").out == ""


def test_status_counts_and_names_what_concerns_a_person_first(tg: Keyboard) -> None:
    tg.store.write(1, status="completed")
    tg.store.write(2, "true")
    tg.store.write(3, blockedBy=[2])
    tg.store.write(4, status="held", reason="ask\x1b")
    tg.store.write(5, status="failed", reason="exit code 1")
    lines = tg.ok("status").lines
    assert lines[0] == "5 tasks: 1 held, 1 ready, 1 blocked, 1 failed, 1 completed"
    assert [line.split()[:2] for line in lines[1:]] == [["held", "4"], ["failed", "5"], ["ready", "2"]]
    assert r"ask\x1b" in lines[1]
    told = tg.json("status")
    assert told["counts"] == {"held": 1, "ready": 1, "blocked": 1, "failed": 1, "completed": 1}
    assert (told["held"], told["ready"], told["failed"], told["faults"]) == ([4], [2], [5], [])


def test_status_with_a_file_that_cannot_be_read(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.store.path(2).write_text("{")
    told = tg("status")
    assert told.code == 5
    assert told.lines[0] == "1 tasks: 1 ready"
    assert "task_2.json, line 1" in told.err
    assert tg.json("status", code=5)["faults"][0]["task"] == 2


def test_status_shows_the_first_of_many(tg: Keyboard) -> None:
    for number in range(1, 16):
        tg.store.write(number)
    lines = tg.ok("status").lines
    assert len(lines) == 12
    assert lines[-1].split() == ["ready", "and", "5", "more"]


def test_explain_goes_down_to_the_root(tg: Keyboard) -> None:
    tg.store.write(1, owner="ann")
    tg.store.write(2, "true", blockedBy=[1])
    tg.store.write(3, "true", blockedBy=[2], name="last")
    told = tg.ok("explain", "last")
    assert told.out == "Task 3 (last) waits for 2; 2 waits for 1. At the root: 1 waits for ann to do it.\n"
    found = tg.json("explain", "3")
    assert (found["task"], found["state"], found["rootCauses"]) == (3, "blocked", [1])
    assert [(each["task"], each["waitsFor"]) for each in found["blockers"]] == [(2, [1]), (1, [])]


def test_explain_what_ended_a_task(tg: Keyboard) -> None:
    tg.store.write(1, status="failed", reason="exit code 7")
    tg.store.write(2, blockedBy=[1])
    tg.store.write(3, blockedBy=[2])
    told = tg.ok("explain", "3").out
    assert "cancelled" in told
    assert "at the root: 1 failed: exit code 7" in told


def test_explain_a_cycle_and_a_missing_task(tg: Keyboard) -> None:
    tg.store.write(1, blockedBy=[2])
    tg.store.write(2, blockedBy=[1])
    tg.store.write(3, blockedBy=[9])
    assert "1 → 2 → 1" in tg.ok("explain", "1").out
    assert "9 does not exist" in tg.ok("explain", "3").out
    tg.store.path(9).write_text("{")
    assert "cannot be read" in tg.ok("explain", "3").out


def test_explain_escapes_control_characters(tg: Keyboard) -> None:
    tg.store.write(1, status="held", reason="ask\nhim\x1b[2J")
    told = tg.ok("explain", "1")
    assert len(told.lines) == 1
    assert r"ask\nhim\x1b[2J" in told.out


def test_events_tell_what_was_set(tg: Keyboard) -> None:
    tg.ok("create", "a", "--name", "one")
    tg.ok("create", "b\x1b[2J\n")
    tg.ok("complete", "1", "--result", "7")
    events = tg.json("events")
    assert [(each["id"], each["event"], each["task"]) for each in events] == [
        (1, "created", 1), (2, "created", 2), (3, "completed", 1),
    ]  # fmt: skip
    assert events[2]["result"] == 7
    assert events[2]["status"] == "completed"
    assert {each["by"] for each in events} == {"tester"}
    assert [each["id"] for each in tg.json("events", "1")] == [1, 3]
    assert [each["id"] for each in tg.json("events", "one")] == [1, 3]
    lines = tg.ok("events").lines
    assert len(lines) == 3
    assert r"subject=b\x1b[2J\n" in lines[1]


def test_events_of_a_deleted_task_are_still_there(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("delete", "1")
    assert [each["event"] for each in tg.json("events", "1")] == ["created", "deleted"]
    assert "the history knows of none" in tg.refused(4, "events", "2")


def test_lines_of_the_history_that_are_no_events_are_passed_over(tg: Keyboard) -> None:
    tg.ok("create", "a")
    with open(tg.store.tasks / "events.jsonl", "a") as file:
        file.write('{}\n[]\nnull\njunk\n{"id": 7}\n{"id": 8, "at": null, "event": [], "task": {}}\n{"id": 9, "ev')
    assert [each["id"] for each in tg.json("events")] == [1, 7, 8]
    assert len(tg.ok("events").lines) == 3
    assert [each["id"] for each in tg.json("events", "1")] == [1]
    tg.ok("create", "b")
    assert tg.json("events")[-1]["id"] == 9


@pytest.mark.parametrize("words", [("events", "-f"), ("logs", "1", "-f")])
def test_following_ends_when_nobody_reads_any_more_even_if_nothing_happens(
    store: StoreBox, words: tuple[str, ...]
) -> None:
    store.write(1, "echo hello; while [ ! -e go ]; do sleep 0.05; done")
    run = store.start()
    store.wait_for_status(1, "in_progress")
    until(lambda: (store.tasks / "logs" / "1.1.log").exists() and store.log(1), "a line in the log")
    process = subprocess.Popen(store.command(*words), cwd=store.folder, env=clean_environment(), stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(20) == 0
    (store.folder / "go").touch()
    assert run.wait(20) == 0


@pytest.mark.parametrize("how", ["moved", "removed", "emptied"])
def test_following_goes_on_with_the_file_in_the_place_of_one_that_went(tg: Keyboard, how: str) -> None:
    path = tg.store.tasks / "events.jsonl"
    for _ in range(3):
        tg.ok("create", "a long subject of the first file")
    with subprocess.Popen(
        tg.store.command("events", "-f", "--json"), cwd=tg.store.folder, env=clean_environment(), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        if how == "moved":
            path.rename(path.with_name("old"))
        elif how == "removed":
            path.unlink()
        else:
            path.write_bytes(b"")
        tg.ok("create", "b")
        assert json.loads(process.stdout.readline())["subject"] == "b"
        process.terminate()


def test_following_the_history_gives_one_object_a_line(tg: Keyboard) -> None:
    tg.ok("create", "a")
    with subprocess.Popen(
        tg.store.command("events", "-f", "--json"), cwd=tg.store.folder, env=clean_environment(), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "created"
        tg.ok("update", "1", "--subject", "half \ud83d \u2028 \x1b")
        line = process.stdout.readline()
        assert json.loads(line)["subject"] == "half \ud83d \u2028 \x1b"
        assert line.isascii()
        process.terminate()
