"""`taskgraph list`."""

from __future__ import annotations

import re

import pytest

from tests.cli.driver import Keyboard, in_terminal
from tests.conftest import StoreBox


@pytest.fixture
def filled(tg: Keyboard) -> Keyboard:
    """A store with a task in every state."""
    box = tg.store
    box.write(1, status="completed", owner="ann", labels=["x"])
    box.write(2, labels=["x", "y"], name="two")
    box.write(3, blockedBy=[2], owner="ann")
    box.write(4, status="failed", reason="exit code 1")
    box.write(5, status="held", reason="ask")
    box.write(6, status="skipped")
    box.write(7, status="cancelled")
    box.write(8, status="in_progress", owner="bob", attempts=[{"number": 1, "startedAt": "2026-01-01T00:00:00Z"}])
    box.write(
        9, status="completed", attempts=[{"number": 1, "outcome": "stalled"}, {"number": 2, "outcome": "completed"}]
    )
    box.write(10, notBefore="9999-01-01T00:00:00Z", retryDelay=3600, maxRetries=1,
              attempts=[{"number": 1, "outcome": "failed", "retryIn": 3600}])  # fmt: skip
    box.write(11, status="in_progress", owner="bob",
              attempts=[{"number": 1, "startedAt": "9999-01-01T00:00:00Z"}])  # fmt: skip
    return tg


def ids(tg: Keyboard, *arguments: str) -> list[int]:
    """What `list` shows with some filters."""
    return [int(line) for line in tg.ok("list", "-q", *arguments).lines]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("ready", [2]), ("blocked", [3]), ("delayed", [10]), ("stalled", [8]), ("recovered", [9]), ("held", [5]),
        ("completed", [1, 9]), ("failed", [4]), ("skipped", [6]), ("cancelled", [7]), ("in_progress", [8, 11]),
        ("pending", [2, 3, 10]), ("In-Progress", [8, 11]), ("failed,held", [5, 4]),
    ],
)  # fmt: skip
def test_statuses_and_derived_states_filter(filled: Keyboard, state: str, expected: list[int]) -> None:
    assert ids(filled, "--status", state) == expected


def test_other_filters_and_all_of_them_together(filled: Keyboard) -> None:
    assert ids(filled, "--ready") == [2]
    assert ids(filled, "--owner", "ann") == [1, 3]
    assert ids(filled, "--label", "x") == [1, 2]
    assert ids(filled, "--label", "x", "--label", "y") == [2]
    assert ids(filled, "--label", "x", "--status", "completed", "--owner", "ann") == [1]
    assert ids(filled, "--label", "x", "--owner", "bob") == []
    assert "'sleepy'" in filled.refused(2, "list", "--status", "sleepy")


def test_held_tasks_come_first_then_ids(filled: Keyboard) -> None:
    assert ids(filled) == [5, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert [row["id"] for row in filled.json("list")] == ids(filled)


def test_the_table(filled: Keyboard) -> None:
    lines = filled.ok("list").lines
    assert lines[0].split() == ["ID", "STATE", "TASK", "WAITS", "FOR", "OWNER"]
    assert lines[1].split() == ["5", "held", "task", "5", "ask"]
    assert "two: task 2" in lines[3]
    assert "← 2" in lines[4]
    assert lines[5].split() == ["4", "failed", "task", "4", "exit", "code", "1"]
    assert all(line == line.rstrip() for line in lines)


def test_without_a_terminal_nothing_is_cut_or_coloured(tg: Keyboard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    tg.ok("create", "x" * 300, "--owner", "o" * 50)
    told = tg.ok("list")
    assert "x" * 300 in told.out
    assert "o" * 50 in told.out
    assert "\x1b" not in told.out


def test_control_characters_are_escaped(tg: Keyboard) -> None:
    tg.store.write(
        1, subject="a\nb\tc\x1b[31md\u2028e\udcff\u202e", owner="o\x1b]0;x\x07", status="failed", reason="r\rs\x9b"
    )
    told = tg.ok("list")
    assert r"a\nb\tc\x1b[31md\u2028e\udcff\u202e" in told.out
    assert r"o\x1b]0;x\x07" in told.out
    assert r"r\rs\x9b" in told.out
    assert len(told.lines) == 2


def test_a_file_that_cannot_be_read_does_not_hide_the_rest(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.store.path(2).write_text("{")
    tg.store.write(3, blockedBy=[2])
    told = tg("list")
    assert told.code == 5
    assert told.err.startswith(f"taskgraph: {tg.store.path(2)}, line 1: ")
    assert [line.split()[:2] for line in told.lines[1:]] == [["1", "ready"], ["3", "blocked"]]


def test_an_empty_store(tg: Keyboard) -> None:
    told = tg.ok("list")
    assert (told.out, told.err) == ("", "no tasks\n")
    assert tg.json("list") == []
    assert tg.ok("list", "-q").out == ""


@pytest.mark.parametrize("columns", [200, 60, 40])
def test_in_a_terminal_rows_are_cut_to_its_width_but_never_id_or_state(store: StoreBox, columns: int) -> None:
    store.write(1, status="completed", subject="short")
    store.write(
        2, subject="a subject that is far too long for any terminal " * 8, owner="an owner with a long name " * 3
    )
    store.write(3, status="failed", subject="日本語" * 40, reason="a reason that goes on and on " * 9)
    drawn = in_terminal(store, "list", columns=columns, NO_COLOR="1")
    rows = [line for line in drawn.split("\n") if line.strip()]
    assert len(rows) == 4
    assert [row.split()[:2] for row in rows[1:]] == [["1", "completed"], ["2", "ready"], ["3", "failed"]]
    assert "short" in rows[1]
    assert "…" in rows[2]
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", row) for row in rows]
    assert plain[0].split()[:3] == ["ID", "STATE", "TASK"]
    assert all(len(row) <= columns for row in plain)


def test_colours_in_a_terminal_only_where_wanted(store: StoreBox) -> None:
    store.write(1, status="completed", subject="\x1b[31mred")
    assert "\x1b[32mcompleted" in in_terminal(store, "list")
    for env in ({"NO_COLOR": "1"}, {"NO_COLOR": "yes", "FORCE_COLOR": "1"}):
        drawn = in_terminal(store, "list", **env)
        assert "\x1b[3" not in drawn
        assert r"\x1b[31mred" in drawn
