"""Faults: one sentence for a person, one exit code for a script, details for a program."""

from __future__ import annotations

import json

import pytest

from taskgraph import errors

CODES = {"NotFoundError": 4, "StoreError": 5, "RefusedError": 6, "LockedError": 7, "UsageError": 2, "CycleError": 2,
         "NothingToDo": 3, "TaskgraphError": 1}  # fmt: skip


def test_every_fault_has_the_exit_code_of_the_table_and_a_kind_of_its_own() -> None:
    found = {e.__name__: e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)}
    assert {name: error.exit_code for name, error in found.items()} == CODES
    assert len({error.kind for error in found.values()}) == len(found)
    assert all(error.__doc__ for error in found.values())


def test_a_fault_as_json_holds_what_a_program_wants_to_know() -> None:
    error = errors.StoreError("a/task_1.json", "the file is empty", 3)
    assert error.message == "a/task_1.json, line 3: the file is empty"
    assert json.loads(json.dumps(error.as_json())) == {
        "kind": "store", "message": error.message, "exitCode": 5, "path": "a/task_1.json", "line": 3,
        "reason": "the file is empty",
    }  # fmt: skip


@pytest.mark.parametrize(("length", "whole"), [(2, True), (12, True), (13, False), (5000, False)])
def test_a_long_cycle_is_shortened_in_its_sentence_only(length: int, whole: bool) -> None:
    ring = [*range(1, length), 1]
    error = errors.CycleError(ring)
    assert error.details["cycle"] == ring
    assert (" → ".join(map(str, ring)) in error.message) is whole
    if not whole:
        shown = error.message.split(": ")[1].split(";")[0].split(" → ")
        named = [int(word) for word in shown if word.isdigit()]
        missing = int(next(word for word in shown if "more" in word).strip("… ()").split()[0])
        assert len(named) + missing == length
