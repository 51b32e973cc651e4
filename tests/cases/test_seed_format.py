"""The format of the files, as it was agreed on in the beginning, and a task that was written by hand."""

from __future__ import annotations

from tests.cli.driver import Keyboard


def edges(tg: Keyboard) -> list[tuple[list[int], list[int]]]:
    """What the files of the three tasks hold."""
    return [(tg.store.read(i)["blockedBy"], tg.store.read(i)["blocks"]) for i in (1, 2, 3)]


def seed(tg: Keyboard) -> None:
    """Set up, write, test: each waits for the one before."""
    for subject in ("Setup project", "Write code", "Write tests"):
        tg.ok("create", subject)
    tg.ok("update", "2", "--add-blocked-by", "1")
    tg.ok("update", "3", "--add-blocked-by", "2")


def test_edges_stand_on_both_sides(tg: Keyboard) -> None:
    seed(tg)
    assert edges(tg) == [([], [2]), ([1], [3]), ([2], [])]


def test_completion_clears_the_direct_dependent_alone(tg: Keyboard) -> None:
    seed(tg)
    tg.ok("update", "1", "--status", "completed")
    assert edges(tg) == [([], [2]), ([], [3]), ([2], [])]
    assert tg.store.read(1)["status"] == "completed"


def test_a_closing_edge_is_refused_and_the_cycle_named(tg: Keyboard) -> None:
    seed(tg)
    before = [tg.store.path(i).read_bytes() for i in (1, 2, 3)]
    assert "1 → 2 → 3 → 1" in tg.refused(2, "update", "1", "--add-blocked-by", "3")
    assert [tg.store.path(i).read_bytes() for i in (1, 2, 3)] == before


def test_a_task_written_by_hand(tg: Keyboard) -> None:
    seed(tg)
    written = '{"id": 7, "subject": "By hand", "blockedBy": "1"}'
    tg.store.path(7).write_text(written)
    row = tg.json("list")[-1]
    assert (row["id"], row["subject"], row["state"], row["blockedBy"]) == (7, "By hand", "blocked", [1])
    assert tg.json("get", "7")["blockedBy"] == [1]
    assert tg.store.path(7).read_text() == written
    assert tg.json("create", "Next")["id"] == 8
    assert edges(tg)[0] == ([], [2, 7])
    tg.ok("complete", "1")
    assert tg.store.read(7)["blockedBy"] == []
    assert tg.json("get", "7")["state"] == "ready"


def test_a_run_treats_a_task_written_by_hand_right(tg: Keyboard) -> None:
    tg.ok("create", "Setup project", "--command", "echo 1 >> ran")
    tg.store.path(7).write_text('{"id": 7, "subject": "By hand", "blockedBy": "1", "command": "echo 7 >> ran"}')
    tg.ok("run")
    assert tg.store.lines("ran") == ["1", "7"]
    assert tg.store.read(1)["blocks"] == [7]
    assert (tg.store.read(7)["blockedBy"], tg.store.read(7)["unblockedBy"]) == ([], [1])
