"""Where a store is found, and what the names of its files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskgraph.errors import NotFoundError, StoreError
from taskgraph.store import layout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """outer/.tasks, outer/inner/deep, outer/renamed (a store by another name), outer/bare."""
    for name in ("outer/.tasks", "outer/inner/deep", "outer/renamed", "outer/bare"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "outer/renamed/.highwatermark").write_text("0\n")
    return tmp_path / "outer"


@pytest.mark.parametrize(
    ("where", "env", "cwd", "found"),
    [
        (None, None, ".", ".tasks"),
        (None, None, "inner/deep", ".tasks"),
        (".", None, ".", ".tasks"),
        (".tasks", None, ".", ".tasks"),
        ("..", None, "inner", ".tasks"),
        ("{tree}", None, "inner", ".tasks"),
        ("{tree}/.tasks", None, "inner", ".tasks"),
        (None, "{tree}/.tasks", "inner", ".tasks"),
        (None, "{tree}", "inner", ".tasks"),
        ("renamed", "{tree}/.tasks", ".", "renamed"),
        ("renamed", None, ".", "renamed"),
    ],
)
def test_a_store_is_found_like_git_finds_its_repository(
    tree: Path, where: str | None, env: str | None, cwd: str, found: str
) -> None:
    named = where and where.format(tree=tree)
    environment = {"TASKGRAPH_DIR": env.format(tree=tree)} if env else {}
    root = layout.find(named, environment, str(tree / cwd))
    assert Path(root).resolve() == tree / found


@pytest.mark.parametrize(("where", "env"), [("bare", {}), ("nowhere", {}), (None, {"TASKGRAPH_DIR": "/nowhere"})])
def test_a_store_that_was_named_is_never_replaced_by_one_further_up(
    tree: Path, where: str | None, env: dict[str, str]
) -> None:
    with pytest.raises(NotFoundError, match=r"no store at .*taskgraph init"):
        layout.find(where, env, str(tree))


def test_without_any_store_upwards_the_way_to_make_one_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=f"no .tasks folder in {tmp_path} or above; make one with 'taskgraph init'"):
        layout.find(None, {}, str(tmp_path))


@pytest.mark.parametrize("named", [True, False])
def test_a_file_of_that_name_is_no_store(tmp_path: Path, named: bool) -> None:
    (tmp_path / ".tasks").write_text("")
    with pytest.raises(StoreError, match="is not a folder"):
        layout.find(str(tmp_path) if named else None, {}, str(tmp_path))


@pytest.mark.parametrize(
    ("name", "task_id"),
    [("task_1.json", 1), ("task_120.json", 120), ("task_0.json", None), ("task_01.json", None), ("task_1.json.tmp", None),
     (".task_1.json.tmp", None), ("task_.json", None), ("task_1_2.json", None), ("task_１.json", None), ("task_1.json\n", None)],
)  # fmt: skip
def test_the_id_in_a_name(name: str, task_id: int | None) -> None:
    assert layout.id_of(name) == task_id


def test_the_highest_attempt_of_each_task_that_left_a_log(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("3.1.log", "3.12.log", "7.2.log", "notes.txt", "x.1.log", "3.verify.log"):
        (tmp_path / "logs" / name).write_text("")
    assert layout.logged(str(tmp_path)) == {3: 12, 7: 2}
    assert layout.logged(str(tmp_path / "nowhere")) == {}
