"""Signs of life: which files count for whom, by their times alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from taskgraph.core.fields import format_time
from taskgraph.core.task import Task
from taskgraph.store import layout, signs
from tests.core.build import AT, NOW, task
from tests.store.conftest import write


def running(root: Path, **values: Any) -> Task:
    """A task in progress, started at `NOW` by runner r, its file written then."""
    one = task(1, "in_progress", **{"attempts": [{"number": 2, "startedAt": AT, "process": "r.k"}], **values})
    at(write(root, 1), 0)
    return one


def at(path: Path | str, seconds: float) -> None:
    """Give a file a time, making it where it is not there."""
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).touch()
    os.utime(path, (NOW + seconds, NOW + seconds))


@pytest.mark.parametrize(
    ("touched", "by_work_alone", "seconds"),
    [
        ({}, True, 0),
        ({"log": 5}, True, 5),
        ({"beat": 7}, True, 7),
        ({"log": 5, "beat": 3}, True, 5),
        ({"runner": 9}, True, 0),
        ({"runner": 9}, False, 9),
        ({"log": 5, "runner": 3}, False, 5),
        ({"log": -5}, True, 0),
    ],
)
def test_the_last_sign_is_the_latest_that_counts(
    root: Path, touched: dict[str, float], by_work_alone: bool, seconds: float
) -> None:
    one = running(root)
    paths = {"log": layout.log_path(str(root), 1, 2), "beat": layout.run_path(str(root), 1, 2, "beat"),
             "runner": layout.runner_path(str(root), "r")}  # fmt: skip
    for name, when in touched.items():
        at(paths[name], when)
    at(layout.log_path(str(root), 1, 1), 500)  # of an attempt that is over
    assert signs.last(str(root), one, by_work_alone=by_work_alone) == NOW + seconds


def test_what_a_person_wrote_holds_until_the_work_beats_again(root: Path) -> None:
    one = running(root, heartbeatAt=format_time(NOW - 3600))
    at(root / "task_1.json", 10)
    assert signs.last(str(root), one, by_work_alone=True) == NOW - 3600
    at(layout.run_path(str(root), 1, 2, "beat"), 20)
    assert signs.last(str(root), one, by_work_alone=True) == NOW + 20


def test_a_task_that_a_hand_put_in_progress_beats_by_its_file(root: Path) -> None:
    one = running(root, attempts=[])
    at(root / "task_1.json", 30)
    assert signs.last(str(root), one, by_work_alone=True) == NOW + 30


def test_a_beat_needs_no_folder_and_no_lock(root: Path) -> None:
    (root / "run").rmdir()
    signs.touch(str(root), 1, 2)
    path = Path(layout.run_path(str(root), 1, 2, "beat"))
    at(path, -500)
    signs.touch(str(root), 1, 2)
    assert path.stat().st_mtime > NOW - 500
    assert not (root / ".lock").exists()


def test_the_clock_of_the_store_is_that_of_a_file_just_touched(root: Path) -> None:
    (root / "run").rmdir()
    first, second = signs.clock(str(root)), signs.clock(str(root))
    assert first <= second
    assert second == (root / "run" / "clock").stat().st_mtime
