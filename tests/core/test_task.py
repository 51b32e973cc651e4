"""A task backed by the object of its file: fields, changes, and the tolerant reading of a whole object."""

from __future__ import annotations

from typing import Any

import pytest

from taskgraph.core.task import FIELDS, FIRST, MISSING, FieldError, Task, new_task, normalise


@pytest.mark.parametrize(
    ("key", "given", "kept"),
    [
        ("blockedBy", "1", [1]),
        ("blockedBy", "#1", [1]),
        ("blockedBy", 1, [1]),
        ("blockedBy", ["1", 2.0], [1, 2]),
        ("blockedBy", None, []),
        ("blocks", None, []),
        ("unblockedBy", "[4]", [4]),
        ("status", "Completed", "completed"),
        ("status", "in progress", "in_progress"),
        ("status", None, "pending"),
        ("owner", None, ""),
        ("subject", None, ""),
        ("id", "#3", 3),
        ("id", 3.0, 3),
        ("maxRetries", "2", 2),
        ("timeout", 0, 0),
        ("labels", "urgent", ["urgent"]),
        ("result", None, None),
        ("result", {"deep": [None]}, {"deep": [None]}),
    ],
)
def test_a_known_field_is_brought_into_the_form_it_is_kept_in(key: str, given: Any, kept: Any) -> None:
    data = normalise({key: given})
    assert data == {key: kept}
    assert type(data[key]) is type(kept)


@pytest.mark.parametrize("key", sorted(FIELDS.keys() - set(FIRST) - {"result"}))
def test_a_null_for_an_optional_field_means_absent(key: str) -> None:
    assert normalise({key: None}) == {}


@pytest.mark.parametrize(
    ("key", "given"),
    [("id", 3.7), ("id", True), ("blockedBy", [3.7]), ("blockedBy", True), ("blocks", "x"), ("status", "done"),
     ("subject", 3), ("maxRetries", -1), ("timeout", "soon"), ("metadata", []), ("createdAt", "yesterday"),
     ("attempts", [{}]), ("command", 7), ("waived", "yes"), ("name", "3")],
)  # fmt: skip
def test_what_is_not_certain_is_refused_by_the_name_of_its_field(key: str, given: Any) -> None:
    with pytest.raises(FieldError) as caught:
        normalise({"subject": "x", key: given})
    assert caught.value.key == key
    assert str(caught.value).startswith(f"{key}: ")


def test_unknown_fields_and_the_order_of_keys_survive() -> None:
    data = {"x-review": {"by": "p1", "n": [1, None]}, "status": "Failed", "zzz": None, "id": "4", "blocks": "2"}
    kept = normalise(dict(data))
    assert list(kept) == list(data)
    assert (kept["x-review"], kept["zzz"]) == (data["x-review"], None)


def test_defaults_of_absent_fields_are_never_shared() -> None:
    first, second = normalise({"blockedBy": None}), normalise({"blockedBy": None})
    first["blockedBy"].append(1)
    assert second == {"blockedBy": []}
    assert Task({}).blocked_by == []


def test_a_new_task_has_the_seven_fields_first_then_those_given_in_the_order_of_the_file() -> None:
    task = new_task(3, zzz=1, maxRetries=2, name="hotel", subject="Book", owner="me")
    assert list(task.data) == [*FIRST, "name", "maxRetries", "zzz"]
    assert task.id == 3
    assert task.stamp is None


def test_what_was_given_explicitly_stays_even_where_it_equals_a_default() -> None:
    assert new_task(1, timeout=0, maxRetries=0).data.keys() >= {"timeout", "maxRetries"}


def test_a_change_remembers_the_value_before_the_first_one() -> None:
    task = Task({"id": 1, "owner": "a"})
    task.owner = "b"
    task.owner = "c"
    task.put("labels", ["x"])
    task.clear("labels", "owner", "never there")
    assert task.was == {"owner": "a", "labels": MISSING}
    assert task.data == {"id": 1}


def test_setting_what_is_there_already_changes_nothing() -> None:
    task = Task({"id": 1, "priority": 1})
    task.priority = 1
    assert task.was is None
    task.put("priority", True)
    assert task.was == {"priority": 1}


@pytest.mark.parametrize(
    ("data", "manual"),
    [({}, True), ({"command": ""}, False), ({"command": []}, False), ({"command": "true"}, False),
     ({"worker": "w"}, False), ({"workers": ["w"]}, False)],
)  # fmt: skip
def test_a_task_without_command_and_worker_is_manual(data: dict[str, Any], manual: bool) -> None:
    assert Task(data).manual is manual


def test_attempts_of_the_present_visit_and_the_one_under_way() -> None:
    attempts = [
        {"number": 1, "outcome": "failed"},
        {"number": 2, "visit": 2, "outcome": "lost"},
        {"number": 3, "visit": 2},
    ]
    task = Task({"id": 1, "visits": 2, "attempts": attempts})
    assert [a["number"] for a in task.tries] == [2, 3]
    assert task.current == attempts[-1]
    assert Task({"attempts": attempts[:1]}).current is None
    assert Task({"visits": 0}).visit == 1


def test_every_field_says_what_it_is_and_its_default_passes_its_own_check() -> None:
    for key, field in FIELDS.items():
        assert field.doc.endswith("."), key
        if key not in ("id", "name") and not key.endswith("At") and key != "notBefore":
            assert field.check(field.default) == field.default, key
