"""The writer: history and promises first, then commands, then files; and nothing put off for longer than it may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskgraph.core import moves
from taskgraph.core.graph import Graph
from taskgraph.core.limits import PLAIN, resolve
from taskgraph.manager import TaskManager
from taskgraph.runner.writer import Writer
from taskgraph.store import files, promises

AT = "2026-05-01T08:00:00.000Z"


@pytest.fixture
def boss(tmp_path: Path) -> TaskManager:
    files.make(str(tmp_path / ".tasks"))
    return TaskManager(tmp_path, by="test")


def begin(boss: TaskManager, *ups: tuple[int, ...]) -> tuple[Graph, Writer]:
    """Tasks that wait for these, the graph of a run over them, and its writer."""
    for blocked_by in ups:
        boss.create("a", command="true", blocked_by=blocked_by)
    graph = boss.reconcile()
    return graph, Writer(boss.store, graph, "run")


def stored(boss: TaskManager, task_id: int) -> str:
    """The text of a task file, as anybody may see it."""
    return Path(boss.root, f"task_{task_id}.json").read_text()


def test_a_start_is_promised_before_the_command_is_handed_over_and_written_a_moment_later(boss: TaskManager) -> None:
    graph, writer = begin(boss, ())
    seen: list[str] = []
    with boss.store.locked():
        moves.start(graph, graph.tasks[1], AT, process="r.1")
        writer.commit(0.0, [], [1], lambda: seen.append(TaskManager(boss.root).get(1).status), lambda: False)
        assert seen == ["in_progress"]
        assert '"pending"' in stored(boss, 1)
    assert TaskManager(boss.root).get(1).status == "in_progress"
    assert writer.next_due() == promises.DELAY
    with boss.store.locked():
        writer.commit(promises.DELAY, [], [], lambda: None, lambda: False)
    assert '"in_progress"' in stored(boss, 1)
    assert writer.next_due() == float("inf")


def test_an_end_is_written_at_once_unless_something_more_urgent_waits(boss: TaskManager) -> None:
    graph, writer = begin(boss, (), ())
    for task_id, busy, written in ((1, False, True), (2, True, False)):
        task = graph.tasks[task_id]
        with boss.store.locked():
            moves.start(graph, task, AT, process="r.1")
            moves.conclude(graph, task, AT, resolve(task, PLAIN), {"outcome": "completed", "exitCode": 0})
            writer.commit(0.0, [task_id], [], lambda: None, lambda busy=busy: busy)
        assert ('"completed"' in stored(boss, task_id)) is written
        assert TaskManager(boss.root).get(task_id).status == "completed"
    with boss.store.locked():
        writer.flush()
    assert '"completed"' in stored(boss, 2)


def test_what_is_too_long_to_be_promised_is_written_before_the_lock_is_let_go(boss: TaskManager) -> None:
    graph, writer = begin(boss, ())
    task = graph.tasks[1]
    with boss.store.locked():
        moves.start(graph, task, AT, process="r.1")
        result = "x" * promises.LONGEST
        moves.conclude(graph, task, AT, resolve(task, PLAIN), {"outcome": "completed", "exitCode": 0}, result)
        writer.commit(0.0, [1], [], lambda: None, lambda: True)
        assert '"completed"' in stored(boss, 1)


def test_more_starts_than_may_be_promised_are_written_at_once(boss: TaskManager) -> None:
    ids = list(range(1, promises.MOST + 4))
    graph, writer = begin(boss, *[() for _ in ids])
    with boss.store.locked():
        for task_id in ids:
            moves.start(graph, graph.tasks[task_id], AT, process="r.1")
        writer.commit(0.0, [], ids, lambda: None, lambda: True)
    assert sum('"in_progress"' in stored(boss, i) for i in ids) == 3
    assert {task.status for task in TaskManager(boss.root).list()} == {"in_progress"}


def test_an_edge_of_a_task_that_still_waits_is_written_later_but_is_written(boss: TaskManager) -> None:
    graph, writer = begin(boss, (), (), (1, 2))
    task = graph.tasks[1]
    with boss.store.locked():
        moves.start(graph, task, AT, process="r.1")
        moves.conclude(graph, task, AT, resolve(task, PLAIN), {"outcome": "completed", "exitCode": 0})
        writer.commit(0.0, [1], [], lambda: None, lambda: False)
    assert '"blockedBy": [1, 2]' in stored(boss, 3)
    assert 0 < writer.next_due() <= 1
    with boss.store.locked():
        writer.commit(1.0, [], [], lambda: None, lambda: False)
    assert '"blockedBy": [2]' in stored(boss, 3)


def test_what_others_did_to_a_task_whose_start_is_promised_is_written_at_once(boss: TaskManager) -> None:
    graph, writer = begin(boss, ())
    task = graph.tasks[1]
    with boss.store.locked():
        moves.start(graph, task, AT, process="r.1")
        writer.commit(0.0, [], [1], lambda: None, lambda: True)
        moves.put_aside(graph, task, AT, "cancelled", "no more")
        writer.commit(0.0, [], [], lambda: None, lambda: True)
    assert '"cancelled"' in stored(boss, 1)
