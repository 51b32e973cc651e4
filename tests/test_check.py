"""`check` names every fault of a store, and mends what can be mended without loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskgraph.check import Fault, inspect, mend
from taskgraph.core.fields import STATUSES
from taskgraph.manager import TaskManager
from taskgraph.store import files

FULL: dict[str, Any] = {
    "subject": "x",
    "description": "",
    "status": "pending",
    "blockedBy": [],
    "blocks": [],
    "owner": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The ``.tasks`` folder of an empty store."""
    files.make(str(tmp_path / ".tasks"))
    return tmp_path / ".tasks"


def write(root: Path, task_id: int, **values: Any) -> None:
    """A whole task file as a person would write it."""
    (root / f"task_{task_id}.json").write_text(json.dumps({"id": task_id, **FULL, **values}))
    (root / ".highwatermark").write_text("99\n")


def found(root: Path) -> dict[tuple[str, int | None], Fault]:
    """The faults by kind and task."""
    return {(fault.kind, fault.task): fault for fault in inspect(TaskManager(root))}


def boss(root: Path) -> TaskManager:
    """The manager, in a hurry."""
    return TaskManager(root, durable=False)


def test_a_store_made_by_the_program_has_no_fault(root: Path) -> None:
    one = boss(root)
    for n in range(1, 6):
        one.create("T", blocked_by=[n - 1] if n > 1 else [])
    one.fail(1)
    one.delete([5])
    assert inspect(one) == []
    assert mend(one) == []


@pytest.mark.parametrize(
    ("kind", "task", "mendable", "words", "files_"),
    [
        ("missing", 1, False, "task 1 waits for 9, which does not exist", {1: {"blockedBy": [9]}}),
        ("one_sided", 2, True, "task 1 does not know that it blocks 2", {1: {}, 2: {"blockedBy": [1]}}),
        ("one_sided", 2, True, "task 2 does not know that 1 blocks it", {1: {"blocks": [2]}, 2: {}}),
        ("dangling", 1, True, "task 1 blocks 9, which does not exist", {1: {"blocks": [9]}}),
        ("settled", 2, True, "lists 1 as open, which is completed",
         {1: {"status": "completed", "blocks": [2]}, 2: {"blockedBy": [1]}}),
        ("unsettled", 2, True, "lists 1 as settled, which is pending", {1: {"blocks": [2]}, 2: {"unblockedBy": [1]}}),
        ("cascade", 2, True, "task 2 is pending, but its upstreams make it cancelled",
         {1: {"status": "failed", "blocks": [2]}, 2: {"unblockedBy": [1]}}),
        ("cascade", 2, True, "task 2 is cancelled, but its upstreams make it pending",
         {1: {"blocks": [2]}, 2: {"status": "cancelled", "cause": [1], "blockedBy": [1]}}),
        ("cycle", 1, False, "1 → 2 → 1", {1: {"blockedBy": [2], "blocks": [2]}, 2: {"blockedBy": [1], "blocks": [1]}}),
        ("cycle", 1, False, "1 → 2 → 1", {1: {"blockedBy": [2]}, 2: {"blockedBy": [1]}}),
        ("cycle", 3, False, "3 → 3", {3: {"blockedBy": [3], "blocks": [3]}}),
        ("name", 2, False, "tasks 1 and 2 have the same name 'a'", {1: {"name": "a"}, 2: {"name": "a"}}),
        ("id", 1, True, "task_1.json says its id is 7", {1: {"id": 7}}),
    ],
)  # fmt: skip
def test_each_kind_of_fault(
    root: Path, kind: str, task: int, mendable: bool, words: str, files_: dict[int, dict[str, Any]]
) -> None:
    for task_id, values in files_.items():
        write(root, task_id, **values)
    before = {p.name: p.read_bytes() for p in root.iterdir() if p.is_file()}
    faults = found(root)
    assert {p.name: p.read_bytes() for p in root.iterdir() if p.is_file()} == before, "looking writes nothing"
    fault = faults[kind, task]
    assert words in fault.text
    assert fault.mendable is mendable
    mend(boss(root))
    left = found(root)
    assert ((kind, task) in left) is not mendable
    assert not [f for f in left.values() if f.mendable]


@pytest.mark.parametrize(
    ("name", "text", "kind", "words", "mendable"),
    [
        ("task_2.json", "{", "unreadable", "no valid JSON", False),
        ("task_2.json", '{"status": "done"}', "unreadable", "'done' is no status", False),
        ("config.toml", "[default]", "config", "line 1: unknown table", False),
        (".task_1.json.tmp", "half", "leftover", "left by a writer that was killed", True),
        ("task_007.json", "{}", "file_name", "is no name of a task file", False),
        ("events.jsonl", '{"id":1}\n{"id"', "history", "events.jsonl, line 2", False),
        pytest.param("events.jsonl", "[" * 100_000 + "\n", "history", "events.jsonl, line 1", False, id="deep"),
        (".highwatermark", "0", "mark", ".highwatermark is behind the highest id, 1", True),
    ],
)
def test_faults_of_the_folder(root: Path, name: str, text: str, kind: str, words: str, mendable: bool) -> None:
    write(root, 1)
    (root / name).write_text(text)
    (fault,) = [f for f in inspect(TaskManager(root)) if f.kind == kind]
    assert words in fault.text
    assert fault.mendable is mendable
    mend(boss(root))
    assert bool([f for f in inspect(TaskManager(root)) if f.kind == kind]) is not mendable
    if not mendable:
        assert (root / name).read_text().startswith(text)


def test_a_file_that_lacks_fields_is_completed_with_nothing_lost(root: Path) -> None:
    (root / "task_1.json").write_text('{"x-own": [1], "subject": "by hand"}')
    assert ("incomplete", 1) in found(root)
    mend(boss(root))
    data = json.loads((root / "task_1.json").read_text())
    assert data == {"x-own": [1], "id": 1, **FULL, "subject": "by hand"}
    assert inspect(boss(root)) == []


def test_an_unreadable_neighbour_is_no_missing_one_and_keeps_its_edges(root: Path) -> None:
    write(root, 1, blocks=[2], blockedBy=[2])
    (root / "task_2.json").write_text("{")
    kinds = {kind for kind, _ in found(root)}
    assert kinds == {"unreadable"}
    mend(boss(root))
    assert json.loads((root / "task_1.json").read_text())["blocks"] == [2]


@st.composite
def any_store(draw: st.DrawFn) -> dict[int, dict[str, Any]]:
    ids = st.lists(st.integers(1, 5), max_size=2)
    made = {}
    for task_id in range(1, draw(st.integers(1, 4)) + 1):
        values = {
            "status": draw(st.sampled_from(STATUSES)),
            "blockedBy": draw(ids),
            "blocks": draw(ids),
            "x-own": task_id,
        }
        if draw(st.booleans()):
            values["unblockedBy"] = draw(ids)
        if draw(st.booleans()):
            values["cause"] = draw(ids)
        made[task_id] = {key: value for key, value in values.items() if draw(st.integers(0, 5))}
    return made


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(any_store())
def test_what_is_mended_is_in_order_and_what_has_no_fault_needs_no_mending(
    root: Path, tasks: dict[int, dict[str, Any]]
) -> None:
    for old in root.glob("task_*.json"):
        old.unlink()
    for task_id, values in tasks.items():
        (root / f"task_{task_id}.json").write_text(json.dumps(values))
    mend(boss(root))
    assert not [fault for fault in inspect(boss(root)) if fault.mendable]
    before = {p.name: p.read_bytes() for p in root.glob("task_*.json")}
    boss(root).reconcile()
    assert {p.name: p.read_bytes() for p in root.glob("task_*.json")} == before
    for task_id, values in tasks.items():
        now = json.loads((root / f"task_{task_id}.json").read_text())
        assert now.get("x-own") == values.get("x-own")
        for key in ("blockedBy", "unblockedBy"):
            assert {*values.get(key, [])} <= {*now["blockedBy"], *now.get("unblockedBy", [])}
