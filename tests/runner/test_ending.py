"""Ending what a person has put aside, where no runner is there to do it."""

from __future__ import annotations

import os
import signal

from taskgraph.manager import TaskManager
from taskgraph.runner import ending
from tests.conftest import alive


def test_without_runner_and_keeper_also_what_writes_to_no_log_is_ended(store, gate, monkeypatch):
    monkeypatch.setattr(ending, "GRACE", 0.3)
    body = f'trap "" TERM; echo $$ > pid1; {gate.wait}'
    store.write(1, f"exec sh -c '{body}' > own.log 2>&1")
    run = store.start()
    pid = store.number_in("pid1")
    store.wait_for_status(1, "in_progress")
    run.kill()
    store.ends(run)
    store.keepers()[0].kill()
    task = TaskManager(store.tasks).cancel([1])[0]
    assert alive(pid)
    assert ending.see_off(str(store.tasks), task)
    assert not alive(pid)


def test_an_attempt_that_has_ended_needs_no_ending(store):
    store.write(1, "true")
    store.run()
    assert ending.see_off(str(store.tasks), TaskManager(store.tasks).get(1))


def test_a_stopped_process_is_ended_too(store, gate, monkeypatch):
    monkeypatch.setattr(ending, "GRACE", 2.0)
    store.write(1, f"echo $$ > pid1; {gate.wait}")
    run = store.start()
    pid = store.number_in("pid1")
    store.wait_for_status(1, "in_progress")
    run.kill()
    store.ends(run)
    os.kill(pid, signal.SIGSTOP)
    task = TaskManager(store.tasks).hold([1])[0]
    assert ending.see_off(str(store.tasks), task)
    assert not alive(pid)
