"""Machine output: whatever the state of the store, ``--json`` of every verb is one valid document on stdout."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from taskgraph.cli.app import VERBS
from tests.cli.driver import Answer, Keyboard
from tests.conftest import clean_environment

ABOUT_ONE: dict[str, list[str]] = {
    "update": ["--note", "n"], "get": [], "delete": [], "reopen": [], "skip": [], "cancel": [], "hold": [],
    "release": [], "claim": ["--owner", "a"], "heartbeat": [], "complete": [], "fail": [], "explain": [], "logs": [],
    "events": [], "run": [],
}  # fmt: skip
"""The verbs that take a task, with what else they need."""

ABOUT_ALL: dict[str, list[str]] = {
    "init": [], "create": ["x"], "list": [], "status": [], "check": [], "events": [], "run": [], "run -n": ["-n"],
    "claim": ["--owner", "a"], "reopen": ["--failed"],
}  # fmt: skip
"""The verbs that take none, with what they need."""

HOSTILE = 'new\nline\ttab \x1b[31mred\x1b[0m \u2028 "quoted" \\ \x00 \x7f \u202e \U0001f680'
HALF = "half \ud83d"


def ask(tg: Keyboard, verb: str, *arguments: str) -> Answer:
    """Type a verb with --json; whatever it answers must be one document, and the code a documented one."""
    told = tg(verb.split()[0], *arguments, "--json")
    assert told.code in range(8), told
    document = told.document
    assert "\x1b" not in told.err
    if isinstance(document, dict) and "error" in document:
        error = document["error"]
        assert error["exitCode"] == told.code
        assert error["kind"] in ("usage", "cycle", "nothing", "not_found", "store", "refused", "locked", "error")
        assert error["message"]
    else:
        assert told.code in (0, 1, 3, 5), told
    return told


def numbers(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in a document that must be an id."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from numbers(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item, key)
    elif key in ("id", "task", "blockedBy", "blocks", "unblockedBy", "cause", "failed", "waiting", "deleted", "ready"):
        yield key, value


def test_no_verb_is_forgotten() -> None:
    assert {verb.split()[0] for verb in (*ABOUT_ONE, *ABOUT_ALL)} == set(VERBS)


@pytest.mark.parametrize("verb", ABOUT_ALL)
def test_no_store(tg: Keyboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    (tmp_path / "bare").mkdir()
    monkeypatch.chdir(tmp_path / "bare")
    told = ask(tg, verb, *ABOUT_ALL[verb])
    assert told.code == (0 if verb in ("init", "create") else 4)


@pytest.mark.parametrize("verb", ABOUT_ALL)
def test_empty_store(tg: Keyboard, verb: str) -> None:
    told = ask(tg, verb, *ABOUT_ALL[verb])
    assert told.code == (3 if verb == "claim" else 0)
    if verb in ("list", "events", "run -n", "reopen"):
        assert told.document == []


@pytest.mark.parametrize("verb", ABOUT_ONE)
def test_a_task_that_does_not_exist(tg: Keyboard, verb: str) -> None:
    for ref in ("77", "nobody"):
        told = ask(tg, verb, ref, *ABOUT_ONE[verb])
        assert told.code == 4
        assert told.document["error"]["kind"] == "not_found"


@pytest.mark.parametrize("verb", VERBS)
def test_bad_usage(tg: Keyboard, verb: str) -> None:
    told = ask(tg, verb, "--no-such-option")
    assert told.code == 2
    assert told.document["error"]["kind"] == "usage"


@pytest.mark.parametrize("verb", ABOUT_ONE)
def test_a_file_that_cannot_be_read(tg: Keyboard, verb: str) -> None:
    tg.store.path(1).write_text('{\n  "id": 1,\n  "subject": ')
    told = ask(tg, verb, "1", *ABOUT_ONE[verb])
    assert told.code == (0 if verb == "events" else 5)
    if verb != "events":
        assert told.document["error"]["path"] == str(tg.store.path(1))
        assert told.document["error"]["line"] == 3
    assert tg.store.path(1).read_text() == '{\n  "id": 1,\n  "subject": '


@pytest.mark.parametrize("verb", [*ABOUT_ONE, *(verb for verb in ABOUT_ALL if verb not in ABOUT_ONE)])
def test_hostile_text_beside_a_broken_file(tg: Keyboard, verb: str) -> None:
    for status in ("pending", "in_progress", "completed", "failed", "held"):
        hostile_store(tg, status)
        arguments = ["1", *ABOUT_ONE[verb]] if verb in ABOUT_ONE else ABOUT_ALL[verb]
        told = ask(tg, verb, *arguments)
        for key, value in numbers(told.document):
            # A fault of the store as a whole is about no task.
            assert type(value) is int or (verb == "check" and value is None), (key, value)
        shown = told.document[0] if isinstance(told.document, list) and told.document else told.document
        if isinstance(shown, dict) and "subject" in shown and shown.get("id") == 1:
            assert shown["subject"] == HOSTILE
        if verb in ("list", "status"):
            assert told.code == 5
            assert "task_3.json" in told.err


def hostile_store(tg: Keyboard, status: str) -> None:
    """A task whose every text is hostile, one that waits for it, and a file that cannot be read."""
    ending = {} if status == "in_progress" else {"outcome": "failed"}
    attempt = {"number": 1, "owner": HALF, "error": HOSTILE, "lastLine": HOSTILE, **ending}
    tg.store.write(
        1, subject=HOSTILE, description="x" * 1_000_000, status=status, owner=HALF, reason=HOSTILE, notes=[HALF],
        labels=[HOSTILE], metadata={HOSTILE: HALF}, x_unknown=[HOSTILE], attempts=[attempt],
    )  # fmt: skip
    tg.store.write(2, subject=HALF, blockedBy=["1"])
    tg.store.path(3).write_text("{")
    (tg.store.tasks / "logs" / "1.1.log").write_bytes(b"\x1b[31m\xff\xfe\x00\r\n" + HOSTILE.encode())


def test_a_number_that_json_does_not_have_is_no_result(tg: Keyboard) -> None:
    tg.ok("create", "x")
    for text in ("NaN", "Infinity", "[1e999]", '{"a": -1e999}'):
        assert ask(tg, "complete", "1", "--result", text).code == 2
    assert tg.store.status(1) == "pending"
    tg.ok("update", "1", "--set", "a=NaN", "--set", "b=1e999", "--set", "c=1.5")
    assert tg.json("get", "1")["metadata"] == {"a": "NaN", "b": "1e999", "c": 1.5}


def test_a_number_too_large_in_a_file_is_read_or_reported(tg: Keyboard) -> None:
    tg.store.path(1).write_text('{"id": 1, "subject": "big", "size": 1e999}')
    for verb in ("get", "update"):
        told = ask(tg, verb, "1", *ABOUT_ONE[verb])
        assert told.code == 0 or told.document["error"]["path"] == str(tg.store.path(1))


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX"])
def test_machine_output_is_utf_8_in_any_locale(tg: Keyboard, locale: str) -> None:
    tg.store.write(1, subject="\udcff\udcfe é")
    tg.store.write(2, subject=HALF)
    for more in ({}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"}):
        done = subprocess.run(
            tg.store.command("list", "--json"), cwd=tg.store.folder, capture_output=True, check=True,
            env=clean_environment(LC_ALL=locale, **more),
        )  # fmt: skip
        assert [row["subject"] for row in json.loads(done.stdout.decode())] == ["\udcff\udcfe é", HALF]


def test_a_task_has_its_state_beside_its_status(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("create", "b", "-b", "1")
    rows = tg.json("list")
    assert [(row["status"], row["state"]) for row in rows] == [("pending", "ready"), ("pending", "blocked")]
    assert tg.json("get", "2")["state"] == "blocked"
    for row in rows:
        keys = list(row)
        assert keys.index("state") == keys.index("status") + 1


def test_warnings_go_to_stderr_alone(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.store.path(2).write_text("[]")
    told = tg("list", "--json")
    assert [row["id"] for row in told.document] == [1]
    assert told.err.count("\n") == 1
    assert told.code == 5
