"""What stands in the place of a file but is none: named at once, never waited for."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from taskgraph import regular
from taskgraph.cli.main import run
from taskgraph.manager import TaskManager
from taskgraph.store import files, replace

PLACES = ("task_2.json", "config.toml", ".highwatermark", ".lock", "events.jsonl", ".journal")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    files.make(str(tmp_path / ".tasks"))
    TaskManager(tmp_path).create("a", command="true")
    return tmp_path / ".tasks"


def test_only_a_regular_file_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", str(tmp_path), str(tmp_path / "pipe"), str(tmp_path / "none")):
        with pytest.raises(OSError, match=r"regular|directory|No such"):
            regular.read(path)
    (tmp_path / "file").write_text("text")
    assert regular.read(str(tmp_path / "file")) == b"text"
    with pytest.raises(OSError, match="longer"):
        regular.read(str(tmp_path / "file"), 3)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("verb", [["list"], ["get", "1"], ["create", "b"], ["update", "1", "--note", "x"], ["run"],
                                  ["events"], ["check"], ["status"]])  # fmt: skip
def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(
    root: Path, place: str, verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (root / place).unlink(missing_ok=True)
    os.mkfifo(root / place)
    assert run(verb) in (0, 1, 5)
    assert "Traceback" not in capsys.readouterr().err


def test_a_pipe_in_the_place_of_a_task_is_named_and_stops_nothing_else(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(root / "task_2.json")
    assert run(["run", "-q"]) == 5
    assert TaskManager(root).get(1).status == "completed"
    assert run(["list"]) == 5
    assert "task_2.json: cannot be read: it is no regular file" in capsys.readouterr().err


@pytest.mark.parametrize("place", [".highwatermark", "task_1.json"])
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_file_is_never_replaced(
    root: Path, place: str, linked: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = root.parent / "pipe" if linked else root / place
    (root / place).unlink()
    os.mkfifo(pipe)
    if linked:
        (root / place).symlink_to(pipe)
    run(["create", "b"])
    run(["update", "1", "--note", "x"])
    run(["check", "--fix"])
    assert stat.S_ISFIFO(os.stat(root / place).st_mode)
    assert "Traceback" not in capsys.readouterr().err
    with pytest.raises(OSError, match="not a regular file"):
        replace.put(str(root / place), b"x", durable=False)


@pytest.mark.parametrize("text", ["{}", "garbage", "", "[]", '{"events": 1}'])
def test_a_journal_that_makes_no_sense_is_named(root: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (root / ".journal").write_text(text)
    assert run(["create", "b"]) == 5
    assert ".journal: is no journal of taskgraph; move it away" in capsys.readouterr().err
    assert run(["check"]) == 1
    assert "--fix mends" not in capsys.readouterr().out
    (root / ".journal").unlink()
    assert run(["create", "b"]) == 0


@pytest.mark.parametrize("name", ["run", "logs"])
def test_a_file_in_the_place_of_a_folder_is_named(root: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (root / name).rmdir() if not any((root / name).iterdir()) else None
    (root / name).write_text("")
    assert run(["run"]) == 5
    assert f"/{name}: cannot be written" in capsys.readouterr().err
    assert run(["check"]) == 1
    assert f"{name} is no folder" in capsys.readouterr().out
