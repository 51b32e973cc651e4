"""Tolerant where the meaning is certain, exact where it is not: every form, one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgraph.core import fields as f

HUGE = 10**400
NOT_TEXT = [3, 2.5, True, ["a"], {"a": 1}]


def read(check: Callable[[Any], Any], value: Any) -> Any:
    """The value as kept, with its type, or "refused"."""
    try:
        kept = check(value)
    except ValueError as error:
        return "refused" if str(error) else "refused without a word"
    return kept


@pytest.mark.parametrize("value", [3, 3.0, "3", " 3 ", "#3", "03", "3\n"], ids=repr)
def test_an_id_however_it_is_written(value: Any) -> None:
    kept = f.as_id(value)
    assert (kept, type(kept)) == (3, int)


@pytest.mark.parametrize(
    "value",
    [3.7, True, False, 0, -1, 0.0, "0", "-3", "", "#", "##3", "3.7", "1e3", "three", "３", None, [], [3], {}, "9" * 5000,
     float("inf"), float("nan")],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_what_is_no_certain_id_is_refused(value: Any) -> None:
    assert read(f.as_id, value) == "refused"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ([], []),
        (None, []),
        ([1, 2], [1, 2]),
        (1, [1]),
        ("1", [1]),
        ("#1", [1]),
        (2.0, [2]),
        (["1", "#2", 3.0], [1, 2, 3]),
        ("[1, 2]", [1, 2]),
        (" [] ", []),
        ('["3"]', [3]),
        ([2, 1, 2], [2, 1]),
        ([1, "1", "#1"], [1]),
    ],
)
def test_a_list_of_ids_however_it_is_written(value: Any, kept: list[int]) -> None:
    assert f.as_ids(value) == kept
    assert all(type(item) is int for item in f.as_ids(value))


@pytest.mark.parametrize(
    "value", ["1, 2", "", [True], [0], [1, None], [[1]], {"1": 1}, "[1", "[true]", 3.5, True, [1, 0]]
)
def test_what_is_no_certain_list_of_ids_is_refused(value: Any) -> None:
    assert read(f.as_ids, value) == "refused"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        *((status, status) for status in f.STATUSES),
        ("Completed", "completed"),
        ("IN_PROGRESS", "in_progress"),
        ("in-progress", "in_progress"),
        ("In Progress", "in_progress"),
        (" pending ", "pending"),
        ("canceled", "cancelled"),
        ("Canceled", "cancelled"),
        ("done", "refused"),
        ("blocked", "refused"),
        ("ready", "refused"),
        ("", "refused"),
        *((value, "refused") for value in (None, 1, True, ["pending"])),
    ],
)
def test_statuses(value: Any, kept: str) -> None:
    assert read(f.as_status, value) == kept


def test_a_refused_choice_lists_what_there_is() -> None:
    with pytest.raises(ValueError, match="'done' is no status") as caught:
        f.as_status("done")
    assert all(status in str(caught.value) for status in f.STATUSES)


@pytest.mark.parametrize(
    ("check", "value", "kept"),
    [
        (f.as_count, 2, 2),
        (f.as_count, "2", 2),
        (f.as_count, 2.0, 2),
        (f.as_count, 0, 0),
        (f.as_count, -1, "refused"),
        (f.as_count, 2.5, "refused"),
        (f.as_count, True, "refused"),
        (f.as_count, "two", "refused"),
        (f.as_count, HUGE, "refused"),
        (f.as_seconds, 1.5, 1.5),
        (f.as_seconds, "1.5", 1.5),
        (f.as_seconds, 30.0, 30),
        (f.as_seconds, 0, 0),
        (f.as_seconds, -0.5, "refused"),
        (f.as_seconds, False, "refused"),
        (f.as_seconds, "30s", "refused"),
        (f.as_seconds, "nan", "refused"),
        (f.as_seconds, "inf", "refused"),
        (f.as_seconds, float("nan"), "refused"),
        (f.as_seconds, float("inf"), "refused"),
        (f.as_seconds, HUGE, "refused"),
        (f.as_seconds, -HUGE, "refused"),
        (f.as_seconds, None, "refused"),
        (f.as_seconds, [], "refused"),
        (f.as_factor, 1, 1),
        (f.as_factor, 1.5, 1.5),
        (f.as_factor, 0.5, "refused"),
        (f.as_factor, 0, "refused"),
        (f.as_integer, -3, -3),
        (f.as_integer, "-3", -3),
        (f.as_integer, 1.5, "refused"),
        (f.as_integer, True, "refused"),
        (f.as_exit_codes, [1, 75], [1, 75]),
        (f.as_exit_codes, 75, [75]),
        (f.as_exit_codes, "75", [75]),
        (f.as_exit_codes, [256], "refused"),
        (f.as_exit_codes, [-1], "refused"),
        (f.as_exit_codes, [True], "refused"),
        (f.as_exit_codes, [1.5], "refused"),
        (f.as_flag, True, True),
        (f.as_flag, False, False),
        (f.as_flag, 1, "refused"),
        (f.as_flag, "true", "refused"),
        (f.as_flag, None, "refused"),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)[:24]),
)
def test_numbers_and_flags(check: Callable[[Any], Any], value: Any, kept: Any) -> None:
    found = read(check, value)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize("value", ["", "plain", "Übermorgen ✈️", "3", "\ud800", "two\nlines"], ids=ascii)
def test_any_text_is_text(value: str) -> None:
    assert f.as_text(value) == value


@pytest.mark.parametrize("value", [*NOT_TEXT, None], ids=repr)
def test_nothing_else_is_text(value: Any) -> None:
    assert read(f.as_text, value) == "refused"


@pytest.mark.parametrize("value", ["hotel_jp", "a", "_x", ".hidden", "hotels.tokyo", "v1.2-rc", "über"])
def test_names(value: str) -> None:
    assert f.as_name(value) == value


@pytest.mark.parametrize(
    "value", ["", "3", "3a", "-a", "a b", "a/b", "#3", "a,b", "a\n", "a:b", "café!", "٣", *NOT_TEXT]
)
def test_what_cannot_be_told_from_an_id_or_a_flag_is_no_name(value: Any) -> None:
    assert read(f.as_name, value) == "refused"


@pytest.mark.parametrize(
    ("check", "value", "kept"),
    [
        (f.as_texts, ["a", "b"], ["a", "b"]),
        (f.as_texts, "a", ["a"]),
        (f.as_texts, None, []),
        (f.as_texts, ["a", 1], "refused"),
        (f.as_texts, {"a": 1}, "refused"),
        (f.as_object, {"a": [1]}, {"a": [1]}),
        (f.as_object, None, {}),
        (f.as_object, [], "refused"),
        (f.as_object, "{}", "refused"),
        (f.as_environment, {"A": "x", "B": 1, "C": 1.5}, {"A": "x", "B": "1", "C": "1.5"}),
        (f.as_environment, {"A": True}, "refused"),
        (f.as_environment, {"A": None}, "refused"),
        (f.as_environment, {"A=B": "x"}, "refused"),
        (f.as_environment, {"": "x"}, "refused"),
        (f.as_environment, {"A": "x\0"}, "refused"),
        (f.as_resources, {"gpu": 2}, {"gpu": 2}),
        (f.as_resources, ["gpu", "net"], {"gpu": 1, "net": 1}),
        (f.as_resources, "gpu", {"gpu": 1}),
        (f.as_resources, {"gpu": -1}, "refused"),
        (f.as_resources, {"gpu": 1.5}, "refused"),
        (f.as_command, "echo hi", "echo hi"),
        (f.as_command, ["echo", "a b"], ["echo", "a b"]),
        (f.as_command, ["echo", 1], "refused"),
        (f.as_command, {"run": "x"}, "refused"),
        (f.as_trigger_rule, "One-Success", "one_success"),
        (f.as_trigger_rule, "some_success", "refused"),
        (f.as_on_failure, "Hold", "hold"),
        (f.as_on_failure, "retry", "refused"),
        (f.as_any, None, None),
        (f.as_any, [1, {"a": None}], [1, {"a": None}]),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)[:24]),
)
def test_lists_and_objects(check: Callable[[Any], Any], value: Any, kept: Any) -> None:
    assert read(check, value) == kept


@pytest.mark.parametrize(
    "attempt",
    [
        {"number": 1},
        {"number": 3, "visit": 2, "startedAt": "2026-05-01T08:00:00Z", "outcome": "failed", "exitCode": 1, "cpu": 0.5},
        {"number": 1, "retryIn": 2.5, "x-own": {"free": True}},
    ],
)
def test_attempts_are_kept_as_they_are(attempt: dict[str, Any]) -> None:
    assert f.as_attempts([attempt]) == [attempt]
    assert f.as_attempts(None) == []


@pytest.mark.parametrize(
    "attempts",
    [
        {"number": 1},
        ["1"],
        [{}],
        [{"number": "1"}],
        [{"number": True}],
        [{"number": 1.5}],
        [{"number": 1}, {"number": None}],
        [{"number": 1, "startedAt": "soon"}],
        [{"number": 1, "startedAt": 5}],
        [{"number": 1, "finishedAt": ["soon"]}],
        [{"number": 1, "retryIn": "long"}],
        [{"number": 1, "outcome": 1}],
        [{"number": 1, "outcome": []}],
        [{"number": 1, "process": 1234}],
        [{"number": 1, "process": "a\0b"}],
        [{"number": 1, "process": "../x"}],
        [{"number": 1, "owner": ["me"]}],
        [{"number": 1, "error": {"a": 1}}],
        [{"number": 1, "exitCode": "one"}],
        [{"number": 1, "visit": "first"}],
    ],
    ids=repr,
)
def test_attempts_that_no_rule_could_work_with_are_refused_at_the_door(attempts: Any) -> None:
    assert read(f.as_attempts, attempts) == "refused"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.250Z", 0.25),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00Z", 0),
        ("1970-01-02", 86400),
        ("1970-01-01 00:00:10Z", 10),
    ],
)
def test_moments_in_any_zone_and_utc_where_none_is_given(text: str, seconds: float) -> None:
    assert f.parse_time(text) == seconds
    assert f.as_time(text) == text


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-10:00",
        "2026-13-01T00:00:00Z",
        "2026-05-01T25:00Z",
        "1714550000",
        1714550000,
        None,
    ],
)
def test_what_is_no_moment_is_refused(value: Any) -> None:
    assert read(f.as_time, value) == "refused"


@given(st.integers(0, 4_000_000_000_000))
def test_a_written_moment_reads_back_to_the_millisecond(millis: int) -> None:
    text = f.format_time(millis / 1000)
    assert text.endswith("Z")
    assert len(text) == len("2026-05-01T08:00:00.000Z")
    assert abs(f.parse_time(text) - millis / 1000) < 0.0015


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
CHECKS = [getattr(f, name) for name in dir(f) if name.startswith("as_") and name != "as_choice"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_no_value_breaks_a_check_and_what_is_kept_is_kept_again(check: Callable[[Any], Any]) -> None:
    @given(JSON)
    def run(value: Any) -> None:
        try:
            kept = check(value)
        except ValueError:
            return
        assert repr(check(kept)) == repr(kept)

    run()
