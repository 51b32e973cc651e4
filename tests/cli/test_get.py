"""`taskgraph get`."""

from __future__ import annotations

import shlex

from tests.cli.driver import Keyboard
from tests.cli.test_create import ODD


def test_shows_everything_the_file_holds(tg: Keyboard) -> None:
    tg.store.write(1, status="completed", command="false", name="one", result={"a": [1]}, attempts=[
        {"number": 1, "visit": 1, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z",
         "outcome": "failed", "exitCode": 7, "lastLine": "boom"},
        {"number": 2, "visit": 1, "startedAt": "2026-01-01T00:00:02Z", "finishedAt": "2026-01-01T00:00:03Z",
         "outcome": "completed"},
    ], x_unknown={"k": None}, description="first\nsecond")  # fmt: skip
    told = tg.ok("get", "1").out
    for part in ("task 1: task 1\n", "  status: completed (recovered)\n", "  name: one\n", "  command: false\n",
                 '  result: {"a": [1]}\n', '  x_unknown: {"k": null}\n', "failed: exit 7; last line: boom\n",
                 "  attempt 2 (visit 1) ", "\nfirst\nsecond\n"):  # fmt: skip
        assert part in told, part


def test_json_is_the_file_with_the_state_beside_the_status(tg: Keyboard) -> None:
    tg.store.write(1, x_unknown={"k": [1, None]}, notes=["n"])
    shown = tg.json("get", "1")
    assert shown.pop("state") == "ready"
    file = tg.store.read(1)
    assert {key: shown[key] for key in file} == file


def test_a_list_of_arguments_is_shown_as_it_can_be_pasted(tg: Keyboard) -> None:
    plain = [word for word in ODD if "\n" not in word]
    tg.ok("create", "x", "--", *plain)
    line = next(line for line in tg.ok("get", "1").lines if line.startswith("  command: "))
    assert shlex.split(line.removeprefix("  command: ")) == plain


def test_control_characters_are_escaped_but_lines_of_the_description_stay(tg: Keyboard) -> None:
    tg.store.write(1, subject="a\nb\x1b[31m", description="one\r\ntwo\tx\x1b[2J", owner="o\x07", **{"k\x1b": "v\x1b"},
                   command=["a\x1b"], notes=["n\x1b"], metadata={"m\x1b": "\u2028"})  # fmt: skip
    told = tg.ok("get", "1").out
    assert not set(told) & {"\x1b", "\x07", "\r", "\t", "\u2028"}
    assert "task 1: a\\nb\\x1b[31m\n" in told
    assert "\none\ntwo\\tx\\x1b[2J\n" in told


def test_readers_see_what_a_hand_edit_means_and_write_nothing(tg: Keyboard) -> None:
    tg.store.write(1, status="Completed")
    tg.store.write(2, blockedBy="1")
    before = [tg.store.path(i).read_bytes() for i in (1, 2)]
    shown = tg.json("get", "2")
    assert (shown["blockedBy"], shown["unblockedBy"], shown["state"]) == ([], [1], "ready")
    assert tg.json("get", "1")["status"] == "completed"
    assert [tg.store.path(i).read_bytes() for i in (1, 2)] == before
    assert not (tg.store.tasks / "events.jsonl").exists()


def test_a_file_that_holds_next_to_nothing(tg: Keyboard) -> None:
    tg.store.path(1).write_text("{}")
    assert tg.ok("get", "1").out == "task 1: \n  status: pending (ready)\n"
    shown = tg.json("get", "1")
    assert {"id", "subject", "description", "status", "state", "blockedBy", "blocks", "owner"} == set(shown)
    for verb in ("list", "status", "explain", "events", "check", "run"):
        assert tg(verb, *(["1"] if verb in ("explain", "events") else [])).code in (0, 1, 3)


def test_a_sign_of_life_is_shown(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("claim", "1", "--owner", "ann")
    assert tg.json("get", "1")["heartbeatAt"].endswith("Z")
