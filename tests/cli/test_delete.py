"""`taskgraph delete`."""

from __future__ import annotations

import pytest

from tests.cli.driver import Keyboard


@pytest.fixture
def chain(tg: Keyboard) -> Keyboard:
    """Three tasks, each waiting for the one before."""
    tg.ok("create", "a")
    tg.ok("create", "b", "-b", "1")
    tg.ok("create", "c", "-b", "2")
    return tg


def test_a_task_that_nothing_depends_on(chain: Keyboard) -> None:
    assert chain.ok("delete", "3").out == "deleted 3\n"
    assert not chain.store.path(3).exists()
    assert chain.store.read(2)["blocks"] == []


def test_refused_where_others_depend_on_it(chain: Keyboard) -> None:
    told = chain.json("delete", "1", code=6)
    assert told["error"]["blocks"] == [2]
    assert "--cascade" in chain.refused(6, "delete", "1")
    assert "depends on" in chain.refused(6, "delete", "3", "1")
    assert chain.store.path(3).exists()


def test_force_unlinks_and_says_so(chain: Keyboard) -> None:
    told = chain.ok("delete", "1", "--force")
    assert told.out == "deleted 1\n"
    assert told.err == "taskgraph: unlinked from what was deleted: 2; ready now: 2\n"
    assert chain.store.read(2)["blockedBy"] == []
    assert chain.json("get", "2")["state"] == "ready"


def test_cascade_deletes_what_depends_on_it(chain: Keyboard) -> None:
    chain.ok("create", "apart")
    assert chain.json("delete", "1", "--cascade") == {"deleted": [1, 2, 3], "unlinked": []}
    assert [row["id"] for row in chain.json("list")] == [4]


def test_quiet_prints_ids_alone(chain: Keyboard) -> None:
    told = chain.ok("delete", "-q", "2", "--force")
    assert (told.out, told.err) == ("2\n", "")


def test_refused_while_in_progress(chain: Keyboard) -> None:
    chain.ok("claim", "1", "--owner", "a")
    assert "in progress" in chain.refused(6, "delete", "1", "--force")


def test_ids_are_not_given_out_again(chain: Keyboard) -> None:
    chain.ok("delete", "3")
    assert chain.json("create", "next")["id"] == 4


def test_all_or_none(chain: Keyboard) -> None:
    assert "no task 9" in chain.refused(4, "delete", "3", "9")
    assert len(chain.json("list")) == 3
