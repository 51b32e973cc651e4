"""The example store: planning a trip with real commands, one of which goes silent and is recovered."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from taskgraph import TaskManager
from tests.conftest import clean_environment

EXAMPLE = Path(__file__).parents[1] / ".tasks.example"


def taskgraph(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "taskgraph", *arguments], cwd=folder, env=clean_environment(), capture_output=True,
        text=True, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_it_loads_without_faults(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / ".tasks")
    manager = TaskManager(tmp_path)
    assert {task.name: sorted(task.upstream) for task in manager.list()} == {
        "flight": [], "visa": [], "hotel_jp": [1], "hotel_kr": [1], "itinerary": [1, 2, 3, 4],
    }  # fmt: skip
    assert manager.snapshot().faults == {}
    faults = json.loads(taskgraph(tmp_path, "check", "--json").stdout)["faults"]
    assert [fault for fault in faults if fault["kind"] != "mark"] == []


@pytest.mark.parametrize("name", ["plain", "sp ace 'single' \"double\" $HOME 🚀"])
def test_it_runs_to_an_itinerary_with_both_hotels(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    shutil.copytree(EXAMPLE, folder / ".tasks")
    done = taskgraph(folder, "run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("5 completed (1 recovered); 6 attempts in ")

    tasks: dict[str, dict[str, Any]] = {
        task["name"]: task for task in json.loads(taskgraph(folder, "list", "--json").stdout)
    }
    assert {task["status"] for task in tasks.values()} == {"completed"}
    assert sum(len(task["attempts"]) for task in tasks.values()) == 6
    hotel = tasks["hotel_jp"]
    assert hotel["state"] == "recovered"
    assert [attempt["outcome"] for attempt in hotel["attempts"]] == ["stalled", "completed"]
    assert [attempt["rung"] for attempt in hotel["attempts"]] == ["first", "retry"]

    itinerary = (folder / "itinerary.md").read_text(encoding="utf-8")
    for each in ("hotel_jp", "hotel_kr"):
        assert tasks[each]["result"]["hotel"] in itinerary
    assert tasks["itinerary"]["result"]["days"] == 10
    again = taskgraph(folder, "run")
    assert (again.returncode, "0 attempts" in again.stdout) == (0, True)
