"""The history: ids grow by one, and a line that was cut short spoils no other."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from taskgraph.store.events import History
from tests.conftest import SmallDisk
from tests.store.conftest import in_a_child


def add(root: Path, *names: str) -> None:
    """Append events as one more process would."""
    History(str(root)).append([{"at": "t", "event": name} for name in names], "ann", durable=False)


def ids(root: Path) -> list[int]:
    """The ids that a reader sees."""
    return [event["id"] for event in History(str(root)).read()[0]]


def test_ids_grow_by_one_over_any_number_of_writers(root: Path) -> None:
    add(root, "a", "b")
    assert in_a_child(lambda: add(root, "c")) == 0
    add(root, "d")
    events, _ = History(str(root)).read()
    assert [(e["id"], e["event"], e["by"]) for e in events] == [(n, x, "ann") for n, x in enumerate("abcd", 1)]


def test_two_that_write_in_turn_notice_each_other(root: Path) -> None:
    first, second = History(str(root)), History(str(root))
    for history in (first, second, first, first, second):
        history.begin()
        history.append([{"at": "t", "event": "x"}], "", durable=False)
    assert ids(root) == [1, 2, 3, 4, 5]


def test_an_event_is_one_line_that_says_who_did_it(root: Path) -> None:
    History(str(root)).append([{"at": "t", "event": "x", "subject": "two\nlines é"}], "ann", durable=True)
    raw = (root / "events.jsonl").read_bytes()
    assert raw.count(b"\n") == 1
    assert "é".encode() in raw
    event = json.loads(raw)
    assert list(event)[:3] == ["id", "at", "event"]
    assert (event["subject"], event["by"]) == ("two\nlines é", "ann")


@pytest.mark.parametrize(
    "torn",
    [b'{"id":3,"at":"t","ev', b'{"id":3,"at":"t","event":"c', b"{", b"\0\0\0\0", b'{"id":3,"x":"\xc3'],
    ids=["in a key", "in a text", "after a brace", "zeros of a power cut", "in a character"],
)
def test_a_torn_line_is_passed_over_and_fenced_off(root: Path, torn: bytes) -> None:
    add(root, "a", "b")
    with open(root / "events.jsonl", "ab") as file:
        file.write(torn)
    assert ids(root) == [1, 2]
    add(root, "c")
    assert ids(root) == [1, 2, 3]
    assert (root / "events.jsonl").read_bytes().count(torn + b"\n") == 1


def test_a_last_line_that_lacks_only_its_end_is_no_lost_event(root: Path) -> None:
    add(root, "a", "b")
    path = root / "events.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    add(root, "c")
    assert ids(root) == [1, 2, 3]


@pytest.mark.parametrize(
    "junk",
    [
        b"[" * 100_000 + b"\n",
        b"not json\n",
        b"[1]\n",
        b"\n\n",
        b'{"event": "no id"}\n',
        b'{"id": "7"}\n',
        b"\xff\xfe\n",
    ],
)
def test_lines_that_are_no_events_disturb_nobody(root: Path, junk: bytes) -> None:
    add(root, "a")
    with open(root / "events.jsonl", "ab") as file:
        file.write(junk)
    add(root, "b")
    assert ids(root) == [1, 2]


def test_an_event_longer_than_a_block_does_not_hide_the_last_id(root: Path) -> None:
    History(str(root)).append([{"at": "t", "event": "x", "text": "é" * 200_000}], "", durable=False)
    add(root, "after")
    assert ids(root) == [1, 2]


@pytest.mark.parametrize(
    "torn",
    [b"", b"\0" * 3_000_000, b"garbage\n" * 400_000],
    ids=["a long event", "zeros of a power cut behind it", "garbage behind it"],
)
def test_a_long_last_line_is_read_about_once(root: Path, torn: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    add(root, "first")
    History(str(root)).append([{"at": "t", "event": "x", "text": "x" * 3_000_000}], "", durable=False)
    path = root / "events.jsonl"
    path.write_bytes(path.read_bytes() + torn)
    asked = []
    pread = os.pread
    monkeypatch.setattr("os.pread", lambda fd, size, at: asked.append(size) or pread(fd, size, at))
    add(root, "after")
    assert ids(root) == [1, 2, 3]
    assert sum(asked) < 1.1 * path.stat().st_size


def test_a_mark_tells_whether_only_something_was_added(root: Path) -> None:
    history, path = History(str(root)), root / "events.jsonl"
    nothing = history.mark()
    add(root, "a")
    one = history.mark()
    assert history.mark() == one
    add(root, "b")
    two = history.mark()
    assert two.continues(one)
    assert not one.continues(two)
    assert not one.continues(nothing)
    path.write_bytes(b"")
    assert not history.mark().continues(two)
    path.rename(root / "old")
    add(root, *"abcdef")
    assert not history.mark().continues(two)


def test_a_history_that_was_removed_or_replaced_begins_where_the_file_says(root: Path) -> None:
    history = History(str(root))
    event: dict[str, Any] = {"at": "t", "event": "x"}
    history.begin()
    history.append([event, event], "", durable=False)
    (root / "events.jsonl").unlink()
    history.begin()
    history.append([event], "", durable=False)
    assert ids(root) == [1]
    other = root / "other"
    other.write_bytes(b'{"id":9,"at":"t","event":"x"}\n')
    os.replace(other, root / "events.jsonl")
    history.begin()
    history.append([event], "", durable=False)
    assert ids(root) == [9, 10]


def test_reading_goes_on_from_where_the_last_whole_line_ended(root: Path) -> None:
    add(root, "a")
    history = History(str(root))
    first, offset = history.read()
    with open(root / "events.jsonl", "ab") as file:
        file.write(b'{"id":2,"at":"t",')
    assert history.read(offset) == ([], offset)
    with open(root / "events.jsonl", "ab") as file:
        file.write(b'"event":"b"}\n')
    more, _ = history.read(offset)
    assert ([e["id"] for e in first], [e["id"] for e in more]) == ([1], [2])


def test_where_there_is_no_history_there_are_no_events(root: Path) -> None:
    history = History(str(root))
    assert (history.read(), history.size()) == (([], 0), 0)


def test_no_event_is_written_by_halves_on_a_full_disk(small_disk: SmallDisk) -> None:
    root = small_disk.path / ".tasks"
    root.mkdir()
    add(root, "a")
    small_disk.fill()
    history = History(str(root))
    history.begin()
    with pytest.raises(OSError, match="No space left"):
        history.append([{"at": "t", "event": "big", "text": "x" * 20_000}], "", durable=True)
    assert ids(root) == [1]
    small_disk.make_room()
    history.begin()
    history.append([{"at": "t", "event": "b"}], "", durable=True)
    assert ids(root) == [1, 2]
    assert (root / "events.jsonl").read_bytes().count(b"\n") == 2


def test_a_value_that_json_lacks_leaves_the_history_as_it_was(root: Path) -> None:
    add(root, "a")
    history = History(str(root))
    history.begin()
    with pytest.raises((ValueError, TypeError)):
        history.append([{"at": "t", "event": "x", "bad": {1, 2}}, {"at": "t", "event": object()}], "", durable=False)
    history.begin()
    history.append([{"at": "t", "event": "b"}], "", durable=False)
    assert ids(root) == [1, 2]
