"""`claim` and `heartbeat`: how agents take work, and stay its owners."""

from __future__ import annotations

import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cli.driver import Keyboard
from tests.conftest import StoreBox, clean_environment, until


def test_the_best_ready_task_is_given(tg: Keyboard) -> None:
    tg.ok("create", "low")
    tg.ok("create", "high", "--priority", "5")
    tg.ok("create", "blocked", "-b", "1", "--priority", "9")
    tg.ok("create", "not for people", "--command", "true", "--priority", "9")
    tg.ok("create", "reserved", "--owner", "bob", "--priority", "9")
    assert tg.ok("claim", "--owner", "ann").out == "claimed 2 high (attempt 1)\n"
    assert tg.ok("claim", "-q", "--owner", "ann").out == "1\n"
    assert "no task is ready" in tg.refused(3, "claim", "--owner", "ann")
    assert tg.json("claim", "--owner", "bob")["id"] == 5
    assert tg.json("claim", "--owner", "ann", code=3)["error"]["kind"] == "nothing"


def test_the_answer_carries_the_fence(tg: Keyboard) -> None:
    tg.ok("create", "a")
    taken = tg.json("claim", "1", "--owner", "ann")
    assert (taken["status"], taken["owner"], taken["attempt"]) == ("in_progress", "ann", 1)
    tg.ok("release", "1", "--owner", "ann")
    assert tg.json("claim", "1", "--owner", "bob")["attempt"] == 2
    assert "no longer current" in tg.refused(6, "complete", "1", "--owner", "ann", "--attempt", "1")
    assert "no longer current" in tg.refused(6, "heartbeat", "1", "--owner", "ann", "--attempt", "1")
    assert tg.store.status(1) == "in_progress"


def test_a_claim_needs_a_name(tg: Keyboard, monkeypatch: pytest.MonkeyPatch) -> None:
    tg.ok("create", "a")
    assert "TASKGRAPH_OWNER" in tg.refused(2, "claim")
    monkeypatch.setenv("TASKGRAPH_OWNER", "ann")
    assert tg.json("claim")["owner"] == "ann"
    tg.ok("heartbeat", "1")
    tg.ok("complete", "1")


def test_what_cannot_be_claimed(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("create", "b", "-b", "1")
    tg.ok("create", "c", "--owner", "bob")
    assert "blocked by 1" in tg.refused(6, "claim", "2", "--owner", "ann")
    assert "reserved for bob" in tg.refused(6, "claim", "3", "--owner", "ann")
    tg.ok("claim", "1", "--owner", "bob")
    assert "already claimed by bob" in tg.refused(6, "claim", "1", "--owner", "ann")
    tg.ok("complete", "1", "--owner", "bob")
    assert "completed" in tg.refused(6, "claim", "1", "--owner", "ann")
    tg.ok("claim", "3", "--owner", "ann", "--force")


def test_a_task_of_a_worker(tg: Keyboard) -> None:
    tg.store.write(1, worker="painter")
    assert "painter" not in tg.refused(3, "claim", "--owner", "ann")
    assert "sculptor" in tg.refused(3, "claim", "--owner", "ann", "--worker", "sculptor")
    assert tg.json("claim", "--owner", "ann", "--worker", "painter")["id"] == 1


def test_waiting_ends_when_a_task_becomes_ready(tg: Keyboard) -> None:
    process = subprocess.Popen(
        tg.store.command("claim", "--owner", "ann", "--wait", "30", "-q"), cwd=tg.store.folder,
        env=clean_environment(), stdout=subprocess.PIPE,
    )  # fmt: skip
    until(lambda: (tg.store.tasks / ".lock").exists(), "the claim to have looked once")
    tg.ok("create", "at last")
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, b"1\n")


def test_waiting_in_vain_ends_in_time(tg: Keyboard) -> None:
    began = time.monotonic()
    tg.refused(3, "claim", "--owner", "ann", "--wait", "0.3")
    assert 0.3 <= time.monotonic() - began < 5


def test_one_of_many_claimers_gets_the_task(store: StoreBox) -> None:
    store.write(1)

    def claim(number: int) -> subprocess.CompletedProcess[str]:
        return store.cli("claim", "1", "--owner", f"a{number}")

    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(claim, range(4)))
    assert sorted(each.returncode for each in told) == [0, 6, 6, 6]
    winner = store.read(1)["owner"]
    assert all(f"already claimed by {winner}" in each.stderr for each in told if each.returncode)


def test_a_heartbeat_says_nothing_and_takes_no_lock(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("claim", "1", "--owner", "ann")
    before = tg.store.path(1).read_bytes()
    told = tg.ok("heartbeat", "1", "--owner", "ann")
    assert (told.out, told.err) == ("", "")
    assert tg.ok("heartbeat", "-q", "1", "--owner", "ann").out == "1\n"
    assert tg.json("heartbeat", "1", "--owner", "ann", "--attempt", "1") == {"task": 1, "attempt": 1}
    assert tg.store.path(1).read_bytes() == before
    answers: list[int] = []
    from taskgraph.manager import TaskManager

    with TaskManager(tg.store.tasks).store.locked():
        other = threading.Thread(target=lambda: answers.append(
            tg.store.cli("heartbeat", "1", "--owner", "ann").returncode))  # fmt: skip
        other.start()
        other.join(9)
    assert answers == [0]


def test_a_heartbeat_of_nothing_or_of_somebody_else_is_refused(tg: Keyboard) -> None:
    tg.ok("create", "a")
    assert "nothing to beat for" in tg.refused(6, "heartbeat", "1")
    tg.ok("claim", "1", "--owner", "ann")
    assert "ann" in tg.refused(6, "heartbeat", "1")
    assert "ann" in tg.refused(6, "heartbeat", "1", "--owner", "bob")
    assert "name a task" in tg.refused(2, "heartbeat")


def test_a_silent_owner_loses_the_task(tg: Keyboard) -> None:
    (tg.store.tasks / "config.toml").write_text("[defaults]\nlease = 0.2\n")
    tg.ok("create", "a", "--max-retries", "1")
    tg.ok("claim", "1", "--owner", "ann")
    until(lambda: tg.json("get", "1")["state"] == "stalled", "the lease to end")
    taken = tg.json("claim", "--owner", "bob")
    assert (taken["id"], taken["owner"], taken["attempt"]) == (1, "bob", 2)
    assert "bob" in tg.refused(6, "update", "1", "--status", "completed", "--owner", "ann")
    assert tg.store.outcomes(1) == ["stalled", ""]
