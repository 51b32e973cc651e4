"""Replacing files by exchange: whoever still reads the old version never sees another, and what cannot be is left undone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from taskgraph.core.edit import Edges
from taskgraph.manager import TaskManager
from taskgraph.store.spares import Spares
from tests.store.conftest import opened, read


@pytest.fixture
def spares(tmp_path: Path) -> Iterator[Spares]:
    """Spares in a temporary folder, where the system can exchange names."""
    (tmp_path / "run").mkdir()
    made = Spares(str(tmp_path / "run" / "r"))
    probe = tmp_path / "probe"
    probe.write_bytes(b"old")
    if made.replace(str(probe), b"new", probe.stat()) is None:
        pytest.skip("this file system cannot exchange two names")
    yield made
    made.discard()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file to be replaced."""
    path = tmp_path / "task_1.json"
    path.write_bytes(b"version 0")
    return path


def replace_often(spares: Spares, target: Path, times: int = 100) -> None:
    """Replace a file so often that each spare comes around several times."""
    for n in range(1, times + 1):
        old = target.stat()
        new = spares.replace(str(target), b"version %d" % n, old)
        assert new is not None
        assert (new.st_ino, new.st_size) == (target.stat().st_ino, target.stat().st_size)
        assert target.read_bytes() == b"version %d" % n


def test_a_reader_that_holds_an_old_version_open_never_sees_other_content(spares: Spares, target: Path) -> None:
    refused = 0
    with open(target, "rb") as early:
        for n in range(1, 200):
            if spares.replace(str(target), b"version %d" % n, target.stat()) is None:
                refused += 1
                beside = target.with_suffix(".tmp")
                beside.write_bytes(b"version %d" % n)
                os.replace(beside, target)
            if n == 30:
                late = open(target, "rb")  # noqa: SIM115
        with late:
            assert late.read() == b"version 30"
        assert early.read() == b"version 0"
    assert refused == 2


def test_a_version_that_somebody_keeps_by_another_name_is_never_written_to(
    spares: Spares, target: Path, tmp_path: Path
) -> None:
    old = target.stat()
    os.link(target, tmp_path / "backup")  # after we looked
    assert spares.replace(str(target), b"version 1", old) is not None
    for n in range(100):
        spares.replace(str(target), b"later %d" % n, target.stat())
    assert (tmp_path / "backup").read_bytes() == b"version 0"
    assert target.read_bytes() == b"later 99"


def test_a_file_that_has_two_names_is_replaced_the_usual_way(spares: Spares, target: Path, tmp_path: Path) -> None:
    os.link(target, tmp_path / "twin")
    assert spares.replace(str(target), b"new", target.stat()) is None
    assert target.read_bytes() == b"version 0"


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666, 0o444])
def test_the_mode_is_kept(spares: Spares, target: Path, mode: int) -> None:
    replace_often(spares, target, 30)
    target.chmod(mode)
    replace_often(spares, target, 30)
    assert stat.S_IMODE(target.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_is_kept(spares: Spares, target: Path) -> None:
    os.chown(target, 12345, 23456)
    replace_often(spares, target, 30)
    assert (target.stat().st_uid, target.stat().st_gid) == (12345, 23456)


def test_a_shorter_version_leaves_nothing_of_the_longer_one(spares: Spares, target: Path) -> None:
    for n in range(60):
        blob = b"x" * (5000 if n % 2 else 3)
        assert spares.replace(str(target), blob, target.stat()) is not None
        assert target.read_bytes() == blob


def test_a_file_that_went_away_is_not_made_again(spares: Spares, target: Path) -> None:
    old = target.stat()
    target.unlink()
    assert spares.replace(str(target), b"new", old) is None
    assert not target.exists()


def test_a_link_in_the_place_of_a_spare_is_not_followed(target: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    precious = tmp_path / "precious"
    precious.write_bytes(b"mine")
    for n in range(24):
        (tmp_path / "run" / f"r.{n}.spare").symlink_to(precious)
    spares = Spares(str(tmp_path / "run" / "r"))
    for _ in range(24):
        spares.replace(str(target), b"new", target.stat())
    assert precious.read_bytes() == b"mine"


def test_where_names_cannot_be_exchanged_the_caller_is_told_at_once(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskgraph.store.spares._find_exchange", lambda: None)
    spares = Spares(str(tmp_path / "r"))
    assert spares.replace(str(target), b"new", target.stat()) is None
    assert target.read_bytes() == b"version 0"


def test_after_many_refusals_it_is_no_longer_tried(
    spares: Spares, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    monkeypatch.setattr(spares, "_exchange", lambda *names: tried.append(names) or -1)
    for _ in range(200):
        assert spares.replace(str(target), b"new", target.stat()) is None
    assert 0 < len(tried) < 50
    assert list(target.parent.glob("run/*")) == []


def test_nothing_is_left_when_they_are_discarded(spares: Spares, target: Path) -> None:
    replace_often(spares, target)
    spares.discard()
    assert list((target.parent / "run").iterdir()) == []


@pytest.mark.parametrize("exchange", [True, False], ids=["exchanging", "the usual way"])
def test_a_store_writes_the_same_either_way(root: Path, exchange: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not exchange:
        monkeypatch.setattr("taskgraph.store.spares._find_exchange", lambda: None)
    boss = TaskManager(root, durable=False)
    boss.store = opened(root)
    with boss.store.exchanging("r"):
        for n in range(1, 9):
            boss.create(f"T{n}", blocked_by=[n - 1] if n > 1 else [])
        for _ in range(5):
            boss.update(1, edges=Edges(add_blocks=(5,)))
            boss.update(1, edges=Edges(remove_blocks=(5,)))
        (root / "task_3.json").write_text('{"id": 3, "subject": "typed", "blockedBy": [2], "blocks": [4]}')
        boss.complete(1)
        boss.complete(2)
    assert read(root, 3)["blockedBy"] == []
    assert read(root, 3)["subject"] == "typed"
    assert [read(root, n)["blocks"] for n in range(1, 9)] == [[2], [3], [4], [5], [6], [7], [8], []]
    assert list((root / "run").iterdir()) == []
