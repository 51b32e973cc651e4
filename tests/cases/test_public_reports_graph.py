"""Faults that struck comparable tools and were reported in public: what depends on what, and what an ending means below."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.cli.driver import Keyboard


def views(tg: Keyboard, task_id: int) -> tuple[str, list[int]]:
    """The state and the open upstreams of a task; every view must say the same."""
    shown = tg.json("get", str(task_id))
    row = next(row for row in tg.json("list") if row["id"] == task_id)
    assert (row["state"], row["blockedBy"]) == (shown["state"], shown["blockedBy"])
    ready = [row["id"] for row in tg.json("list", "--ready")]
    assert (task_id in ready) == (shown["state"] == "ready")
    assert tg.store.read(task_id)["blockedBy"] == shown["blockedBy"]
    return shown["state"], shown["blockedBy"]


@pytest.fixture
def chain(tg: Keyboard) -> Keyboard:
    """Three tasks, each waiting for the one before."""
    tg.ok("create", "T1")
    tg.ok("create", "T2", "-b", "1")
    tg.ok("create", "T3", "-b", "2")
    return tg


def test_reopening_a_task_blocks_its_dependents_again(chain: Keyboard) -> None:
    chain.ok("complete", "1")
    assert views(chain, 2) == ("ready", [])
    chain.ok("update", "1", "--status", "pending")
    assert views(chain, 2) == ("blocked", [1])
    assert "blocked by 1" in chain.refused(6, "update", "2", "--status", "in_progress")


def test_reopening_a_task_says_that_completed_dependents_are_out_of_date(chain: Keyboard) -> None:
    chain.ok("complete", "1")
    chain.ok("complete", "2")
    told = chain.ok("update", "1", "--status", "pending")
    assert "2" in told.err
    assert "out of date" in told.err
    assert views(chain, 2) == ("completed", [1])
    chain.ok("complete", "1")
    chain.ok("reopen", "1", "--downstream")
    assert views(chain, 3) == ("blocked", [2])


@pytest.mark.parametrize("by_hand", [False, True])
def test_once_a_failed_parent_is_repaired_its_dependents_run(tg: Keyboard, by_hand: bool) -> None:
    box = tg.store
    box.write(1, "echo 1 >> ran; test -f ok")
    box.write(2, "echo 2 >> ran", blockedBy=[1])
    box.write(3, "echo 3 >> ran", blockedBy=[2])
    box.write(4, "echo 4 >> ran", blockedBy=[1])
    tg.ok("cancel", "4")
    assert tg("run").code == 1
    assert box.statuses() == {1: "failed", 2: "cancelled", 3: "cancelled", 4: "cancelled"}
    (box.folder / "ok").touch()
    tg.ok("update", "1", "--status", "completed" if by_hand else "pending")
    tg.ok("run")
    assert box.statuses() == {1: "completed", 2: "completed", 3: "completed", 4: "cancelled"}
    assert box.lines("ran") == ["1", "2", "3"] if by_hand else ["1", "1", "2", "3"]


@pytest.mark.parametrize("length", [1500, pytest.param(5000, marks=pytest.mark.slow)])
def test_a_long_chain_is_no_cycle_and_hits_no_limit(tg: Keyboard, length: int) -> None:
    for number in range(1, length + 1):
        tg.store.write(number, "true", blockedBy=[number - 1] if number > 1 else [],
                       blocks=[number + 1] if number < length else [])  # fmt: skip
    assert len(tg.ok("list", "-q").lines) == length
    assert "1 is ready to run" in tg.ok("explain", str(length)).out
    told = tg.json("update", "1", "--add-blocked-by", str(length), code=2)
    assert told["error"]["cycle"][0] == told["error"]["cycle"][-1] == 1
    assert len(told["error"]["message"]) < 300
    tg.ok("check", "--fix")
    assert len(tg.json("run", "-n")) == length
    tg.ok("cancel", "1")
    states = [row["status"] for row in tg.json("list")]
    assert states == ["cancelled"] * length
    assert "at the root: 1" in tg.ok("explain", str(length)).out


@pytest.mark.slow
def test_a_chain_of_2000_runs(tg: Keyboard) -> None:
    for number in range(1, 2001):
        tg.store.write(number, "true", blockedBy=[number - 1] if number > 1 else [])
    tg.ok("run", "-j", "8", "-q")
    assert set(tg.store.statuses().values()) == {"completed"}


def test_diamonds_are_no_cycles(tg: Keyboard) -> None:
    tg.ok("create", "1")
    tg.ok("create", "2", "-b", "1")
    tg.ok("create", "3", "-b", "1")
    tg.ok("create", "4", "-b", "2,3")
    told = tg.json("update", "1", "--add-blocked-by", "4", code=2)
    assert told["error"]["cycle"] in ([1, 2, 4, 1], [1, 3, 4, 1])
    tg.ok("update", "4", "--add-blocked-by", "2", "--add-blocked-by", "#2")
    assert tg.store.read(4)["blockedBy"] == [2, 3]
    assert tg.store.read(2)["blocks"] == [4]
    for ref in ("4", "#4"):
        assert tg.json("update", "4", "--add-blocked-by", ref, code=2)["error"]["cycle"] == [4, 4]
    tg.ok("create", "5")
    tg.ok("create", "6")
    tg.ok("update", "5", "--add-blocked-by", "6")
    assert tg.json("update", "6", "--add-blocked-by", "5", code=2)["error"]["cycle"] == [6, 5, 6]


def test_a_lattice_with_a_million_paths_is_checked_at_once(tg: Keyboard) -> None:
    for layer in range(20):
        for side in (1, 2):
            tg.store.write(2 * layer + side, blockedBy=[2 * layer - 1, 2 * layer] if layer else [])
    tg.ok("check", "--fix")
    tg.store.write(99)
    began = time.monotonic()
    tg.ok("update", "99", "--add-blocked-by", "40", "--add-blocked-by", "39")
    assert tg.json("update", "1", "--add-blocked-by", "99", code=2)["error"]["kind"] == "cycle"
    tg.ok("explain", "99")
    tg.ok("list")
    assert time.monotonic() - began < 10


def test_an_edge_drawn_by_hand_on_one_side_counts_and_is_completed(tg: Keyboard) -> None:
    tg.store.write(1, blocks=[2])
    tg.store.write(2)
    tg.store.write(3, blockedBy=[2])
    rows = {row["id"]: row for row in tg.json("list")}
    assert (rows[2]["blockedBy"], rows[2]["state"], rows[2]["blocks"]) == ([1], "blocked", [3])
    tg.ok("create", "any writer")
    assert (tg.store.read(2)["blockedBy"], tg.store.read(2)["blocks"]) == ([1], [3])


def test_deleting_a_task_others_depend_on(chain: Keyboard) -> None:
    assert "2" in chain.refused(6, "delete", "1")
    told = chain.ok("delete", "1", "--force")
    assert "unlinked from what was deleted: 2; ready now: 2" in told.err
    assert views(chain, 2) == ("ready", [])
    chain.ok("create", "T4")
    chain.ok("update", "2", "--add-blocked-by", "4")
    chain.ok("update", "2", "--remove-blocked-by", "4")
    chain.ok("delete", "2", "--cascade")
    assert [row["id"] for row in chain.json("list")] == [4]


# What an ending means below


def end_with(tg: Keyboard, how: str) -> dict[int, str]:
    """Let task 1 end in some way beside dependents with each rule; what became of all."""
    fields: dict[str, Any] = {
        "success": {"command": "true"},
        "failure": {"command": "false"},
        "retried": {"command": "test -f ok || { touch ok; false; }", "maxRetries": 1},
        "timeout": {"command": "sleep 60", "timeout": 0.2},
        "stalled": {"command": "sleep 60", "stallTimeout": 0.3},
        "killed": {"command": "kill -9 $$"},
        "skipped": {"status": "skipped"},
        "cancelled": {"status": "cancelled"},
    }[how]
    box = tg.store
    box.write(1, name="a", **fields)
    box.write(2, "echo f >> ran", blockedBy=[1], triggerRule="one_failed", name="f")
    box.write(3, "echo s >> ran", blockedBy=[1], name="s")
    box.write(4, "echo e >> ran", blockedBy=[2, 3], triggerRule="none_failed_min_one_success", name="e")
    box.write(5, "echo d >> ran", blockedBy=[1], triggerRule="all_done", name="d")
    tg("run", "-q")
    return box.statuses()


@pytest.mark.parametrize("how", ["success", "retried"])
def test_a_branch_for_failures_does_not_run_after_a_success(tg: Keyboard, how: str) -> None:
    ended = end_with(tg, how)
    assert sorted(tg.store.lines("ran")) == ["d", "e", "s"]
    assert ended == {1: "completed", 2: "skipped", 3: "completed", 4: "completed", 5: "completed"}


@pytest.mark.parametrize("how", ["failure", "timeout", "stalled", "killed"])
def test_however_a_parent_dies_what_allows_failure_runs_once(tg: Keyboard, how: str) -> None:
    ended = end_with(tg, how)
    assert sorted(tg.store.lines("ran")) == ["d", "f"]
    assert (ended[1], ended[2], ended[3], ended[5]) == ("failed", "completed", "cancelled", "completed")
    why = {"failure": "exit 1", "timeout": "ran out of time", "stalled": "no sign of life", "killed": "SIGKILL"}[how]
    assert why in tg.store.read(1)["reason"]


def test_after_a_waiver_dependents_go_on_but_not_the_branch_for_failures(tg: Keyboard) -> None:
    ended = end_with(tg, "skipped")
    assert sorted(tg.store.lines("ran")) == ["d", "e", "s"]
    assert ended[2] == "skipped"


def test_after_a_cancellation_by_a_person_only_what_wants_an_end_runs(tg: Keyboard) -> None:
    ended = end_with(tg, "cancelled")
    assert tg.store.lines("ran") == ["d"]
    assert (ended[2], ended[3]) == ("cancelled", "cancelled")


def test_a_run_with_a_failure_and_work_for_people_ends_and_says_who_is_waited_for(tg: Keyboard) -> None:
    box = tg.store
    box.write(1, "false")
    box.write(2, "echo 2 >> ran", blockedBy=[1])
    box.write(4, "echo 4 >> ran", blockedBy=[2], triggerRule="all_done")
    box.write(5, "echo 5 >> ran", blockedBy=[2])
    box.write(6, owner="human")
    box.write(7, "echo 7 >> ran", blockedBy=[6])
    began = time.monotonic()
    told = tg("run")
    assert time.monotonic() - began < 20
    assert told.code == 1
    assert box.lines("ran") == ["4"]
    assert "  6 waits for human to do it" in told.lines
    assert "  7 waits for 6" in told.lines
    tg.ok("skip", "1")
    assert tg("run").code == 3
