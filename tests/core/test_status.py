"""The table of legal moves, cell by cell, and the one door through which a status changes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import taskgraph
from taskgraph.core import status as s
from taskgraph.core.fields import STATUSES
from taskgraph.errors import EXIT_REFUSED, RefusedError
from tests.core.build import AT, graph_of, task

# Written from the page that people read, not from the code.
TABLE = {
    "pending": "in_progress completed failed skipped cancelled held",
    "in_progress": "completed failed pending skipped cancelled held",
    "held": "pending in_progress completed failed skipped cancelled",
    "completed": "pending failed skipped cancelled held",
    "failed": "pending completed skipped cancelled",
    "skipped": "pending completed failed cancelled",
    "cancelled": "pending completed failed skipped",
}
CELLS = [(old, new, new in TABLE[old].split()) for old in STATUSES for new in STATUSES]


@pytest.mark.parametrize(("old", "new", "legal"), CELLS, ids=lambda value: str(value))
def test_every_cell_of_the_table(old: str, new: str, legal: bool) -> None:
    graph = graph_of(one := task(1, old))
    if legal:
        s.move(graph, one, new, "moved", AT)
        assert one.status == new
        assert graph.events[0]["status"] == new
    else:
        with pytest.raises(RefusedError):
            s.move(graph, one, new, "moved", AT)
        assert one.status == old
        assert not graph.events
        assert not graph.dirty


def test_an_illegal_move_names_the_task_its_status_and_what_would_be_legal() -> None:
    graph = graph_of(one := task(7, "failed", name="hotel"))
    with pytest.raises(RefusedError) as caught:
        s.move(graph, one, "held", "held", AT)
    said = caught.value.message
    assert "task 7 (hotel) is failed and cannot become held" in said
    assert all(word in said for word in TABLE["failed"].split())
    assert caught.value.details["legal"] == sorted(TABLE["failed"].split())
    assert caught.value.exit_code == EXIT_REFUSED


def test_the_table_knows_every_status_and_settled_are_the_four_endings() -> None:
    assert set(s.LEGAL) == set(STATUSES)
    assert set(s.SETTLED) == {"completed", "failed", "skipped", "cancelled"}


@pytest.mark.parametrize("new", sorted(s.SETTLED - {"completed"}))
def test_settling_stamps_the_finish_and_leaving_clears_what_belonged_to_the_ending(new: str) -> None:
    graph = graph_of(one := task(1))
    s.move(graph, one, new, new, AT, reason="because", cause=[4], waived=True)
    assert (one.finished_at, one.reason, one.cause, one.waived) == (AT, "because", [4], True)
    s.move(graph, one, "pending", "reopened", AT)
    assert not {"finishedAt", "reason", "cause", "waived", "notBefore"} & one.data.keys()


@pytest.mark.parametrize("answer", [[], "", {}, 0, False, [0], "text", {"a": None}], ids=repr)
def test_an_empty_answer_is_kept_like_any_other(answer: object) -> None:
    graph = graph_of(one := task(1, "in_progress"))
    s.move(graph, one, "completed", "completed", AT, result=answer)
    assert one.data["result"] == answer
    assert graph.events[0]["result"] == answer


def test_no_other_module_sets_a_status() -> None:
    """Only `status.move` assigns it: a search through the syntax trees of the package."""
    culprits = []
    for path in Path(taskgraph.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(isinstance(t, ast.Attribute) and t.attr == "status" for t in targets):
                culprits.append(path.name)
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "put"
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and node.args[0].value == "status"
            ):
                culprits.append(path.name)
    assert culprits == ["status.py"]
