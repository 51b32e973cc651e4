"""`taskgraph init`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.driver import Keyboard


def test_makes_a_store_here(tg: Keyboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "n").mkdir()
    monkeypatch.chdir(tmp_path / "n")
    assert tg.ok("init").out == f"made {tmp_path}/n/.tasks\n"
    ignored = (tmp_path / "n" / ".tasks" / ".gitignore").read_text().split()
    assert ignored == ["run/", "logs/", ".lock", "events.jsonl"]
    assert tg.json("list") == []


def test_one_that_exists_stays_as_it_is(tg: Keyboard) -> None:
    tg.ok("create", "kept")
    before = tg.store.path(1).read_bytes()
    assert "exists already" in tg.ok("init").out
    assert tg.json("init") == {"root": str(tg.store.tasks), "made": False}
    assert tg.store.path(1).read_bytes() == before
    assert tg.json("create", "next")["id"] == 2


def test_makes_one_where_it_is_told(tg: Keyboard, tmp_path: Path) -> None:
    for where in ("elsewhere", "deep/er/.tasks", "sp ace '\"/🚀"):
        told = tg.json("-C", str(tmp_path / where), "init")
        assert told["made"] is True
        assert Path(told["root"]).name == ".tasks"
        assert tg.json("-C", str(tmp_path / where), "list") == []


def test_control_characters_in_the_path_are_escaped(tg: Keyboard) -> None:
    told = tg.ok("-C", "new\nline\x1b[31m", "init")
    assert told.out == f"made {tg.store.folder}/new\\nline\\x1b[31m/.tasks\n"


def test_a_file_in_the_way_is_told(tg: Keyboard, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    assert "cannot be made" in tg.refused(5, "-C", str(tmp_path / "file"), "init")
