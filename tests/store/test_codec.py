"""Task files as bytes: what people's editors write is read, what is not certain is named, what is written is pleasant."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taskgraph.store import codec

PLAIN = b'{"id": 1, "subject": "Book"}'


@pytest.mark.parametrize(
    "raw",
    [
        PLAIN,
        b"\xef\xbb\xbf" + PLAIN,
        PLAIN.replace(b", ", b",\r\n"),
        b"\r\n" + PLAIN + b"\r\n\r\n",
        PLAIN.replace(b": ", b" \t:\n"),
        b'{"id": 1, "subject": "\\u0042ook"}',
        b'{"i\\u0064": 1, "subject": "Book"}',
    ],
    ids=["plain", "BOM", "CRLF", "blank lines", "blanks before colons", "escapes", "an escaped key"],
)
def test_forms_that_mean_the_same(raw: bytes) -> None:
    assert codec.decode(raw) == {"id": 1, "subject": "Book"}


@pytest.mark.parametrize(
    ("raw", "reason", "line"),
    [
        (b"", "the file is empty", None),
        (b" \n\t\n", "the file is empty", None),
        (b"\xef\xbb\xbf", "the file is empty", None),
        (PLAIN.decode().encode("utf-16"), "the encoding is UTF-16", None),
        (PLAIN.decode().encode("utf-16-be"), "no valid JSON", 1),
        (b"\xfe\xff" + PLAIN.decode().encode("utf-16-be"), "the encoding is UTF-16", None),
        ('{\n "subject": "Café"\n}'.encode("latin-1"), "the encoding is not UTF-8", 2),
        (b"[1, 2]", "no JSON object", 1),
        (b'"text"', "no JSON object", 1),
        (b"null", "no JSON object", 1),
        (b"17", "no JSON object", 1),
        (b'{\n  "id": 1,\n  "id": 2\n}', "the key 'id' is given twice", 3),
        (b'{"id": 1,\n"x" : 1,\n"x" : 2}', "the key 'x' is given twice", 3),
        (b'{"id" :1,\n"x"\t:\n1, "x"\r:2}', "the key 'x' is given twice", 3),
        (b'{"id": 1, "m": {"a": 1,\n "a": 1}}', "the key 'a' is given twice", 2),
        (b'{"id": 1, "l": [1, {"a": 1,\n "a": 2}]}', "the key 'a' is given twice", 2),
        (b'{"id": 1, "\\u0061": 1, "a": 2}', "the key 'a' is given twice", None),
        (b'{\n  "id": 1,\n  "owner": "ann"\n  "status": "pending"\n}', "no valid JSON", 4),
        (b'{\n  "id": 1,\n}', "no valid JSON", 3),
        (b'{"id": 1}\n{"id": 2}', "no valid JSON", 2),
        (b'{"id": 1, // first\n "x": 2}', "no valid JSON", 1),
        (b"{'id': 1}", "no valid JSON", 1),
        (b'{"id": 1', "no valid JSON", 1),
        (b'{"x": "a\nb"}', "no valid JSON", 1),
        (b'{"x": NaN}', "NaN is no JSON number", None),
        (b'{"x": -Infinity}', "-Infinity is no JSON number", None),
        (b'{"x": [1, {"y": 1e400}]}', "1e400 is no number", None),
        (b'{"x": ' + b"9" * 5000 + b"}", "no valid JSON", None),
        (b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply", None),
        (b'{"x": ' + b'{"a":' * 600 + b"1" + b"}" * 600 + b"}", "nested too deeply", None),
        (b"\0\0\0\0", "no valid JSON", 1),
        (b"<<<<<<< HEAD\n" + PLAIN, "no valid JSON", 1),
    ],
)  # fmt: skip
def test_what_is_no_task_is_named_with_its_line(raw: bytes, reason: str, line: int | None) -> None:
    with pytest.raises(codec.Unreadable) as caught:
        codec.decode(raw)
    assert reason in caught.value.reason
    assert caught.value.line == line


def test_half_a_surrogate_pair_survives_reading_and_writing() -> None:
    data = codec.decode(b'{"id": 1, "subject": "a\\ud83db"}')
    assert data["subject"] == "a\ud83db"
    written = codec.encode(data)
    assert b"a\\ud83db" in written
    assert codec.decode(written) == data


def test_a_key_that_is_half_a_pair_survives_too() -> None:
    data = codec.decode(b'{"\\udc00": {"\\ud800": 1}}')
    assert codec.decode(codec.encode(data)) == data


@pytest.mark.parametrize("number", ["3.50", "1E5", "-0.0", "123456789012345678901234567890", "0.1", "1e-400", "1.0"])
def test_numbers_keep_their_value_and_kind(number: str) -> None:
    value = codec.decode(f'{{"x": {number}}}'.encode())["x"]
    assert repr(value) == repr(json.loads(number))
    assert repr(codec.decode(codec.encode({"x": value}))["x"]) == repr(value)


def test_a_file_is_written_so_that_people_like_it() -> None:
    data = {
        "id": 3,
        "subject": 'Hôtel "Ōkura" ✈️\n',
        "blockedBy": [1, 2],
        "blocks": [],
        "labels": ["long label number one", "long label number two", "long label number three", "long label number 4"],
        "attempts": [{"number": 1, "outcome": "stalled", "error": "x" * 90}, {"number": 2, "outcome": "completed"}],
        "x-review": {"by": "Zoë ✈️", "ok": True, "none": None},
        "metadata": {"long": {"a": "x" * 60, "b": "y" * 60}},
        "result": 1.5,
    }
    assert codec.encode(data).decode() == (
        "{\n"
        '  "id": 3,\n'
        '  "subject": "Hôtel \\"Ōkura\\" ✈️\\n",\n'
        '  "blockedBy": [1, 2],\n'
        '  "blocks": [],\n'
        '  "labels": [\n'
        '    "long label number one",\n'
        '    "long label number two",\n'
        '    "long label number three",\n'
        '    "long label number 4"\n'
        "  ],\n"
        '  "attempts": [\n'
        '    {"number": 1, "outcome": "stalled", "error": "' + "x" * 90 + '"},\n'
        '    {"number": 2, "outcome": "completed"}\n'
        "  ],\n"
        '  "x-review": {"by": "Zoë ✈️", "ok": true, "none": null},\n'
        '  "metadata": {\n'
        '    "long": {\n'
        '      "a": "' + "x" * 60 + '",\n'
        '      "b": "' + "y" * 60 + '"\n'
        "    }\n"
        "  },\n"
        '  "result": 1.5\n'
        "}\n"
    )


def test_the_order_of_keys_as_typed_is_kept() -> None:
    raw = b'{"zzz": 1, "status": "pending", "x-own": {"b": 1, "a": 2}, "id": 4}'
    data = codec.decode(raw)
    assert list(data) == ["zzz", "status", "x-own", "id"]
    assert list(codec.decode(codec.encode(data))["x-own"]) == ["b", "a"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")], {"a": float("nan")}])
def test_numbers_that_json_lacks_are_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        codec.encode({"x": value})


def test_what_can_be_read_can_be_written_also_from_deep_within_a_program() -> None:
    deepest = max(n for n in range(1, 600) if _readable(b"[" * n + b"]" * n))
    data = codec.decode(b'{"x": ' + b"[" * (deepest - 1) + b'"' + b"y" * 200 + b'"' + b"]" * (deepest - 1) + b"}")

    def further_down(frames: int) -> bytes:
        return codec.encode(data) if frames == 0 else further_down(frames - 1)

    assert codec.decode(further_down(sys.getrecursionlimit() // 3)) == data


@pytest.mark.parametrize("levels", [101, 500, 5000])
def test_what_could_not_be_read_again_is_not_written(levels: int) -> None:
    value: Any = "x" * 200
    for _ in range(levels):
        value = [value]
    with pytest.raises(ValueError, match="nested too deeply"):
        codec.encode({"result": value})


def _readable(nested: bytes) -> bool:
    try:
        codec.decode(b'{"x": ' + nested + b"}")
    except codec.Unreadable:
        return False
    return True


@pytest.mark.parametrize(
    ("raw", "value"),
    [(b"1", 1), (b"\xef\xbb\xbf[1]\r\n", [1]), (b'"x"', "x"), (b"null", None), (b' {"a": []} ', {"a": []})],
)
def test_any_value_that_a_command_may_answer(raw: bytes, value: Any) -> None:
    assert codec.decode_any(raw) == value


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"NaN", b"1e999", b"\xff", b"1 2", b"[" * 100_000], ids=lambda raw: repr(raw)[:12]
)
def test_an_answer_that_is_no_json_is_refused_with_words(raw: bytes) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        codec.decode_any(raw)
    assert str(caught.value)


@pytest.mark.parametrize(("key", "line"), [("id", 2), ("owner", 4), ("missing", None)])
def test_the_line_of_a_key(key: str, line: int | None) -> None:
    assert codec.line_of(b'{\n "id": 1,\n "subject": "x",\n "owner": 3}', key) == line


TEXT = st.text(st.characters(codec=None, categories=("L", "N", "P", "S", "Z", "Cc", "Cs", "Co")), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=25,
)


@given(st.dictionaries(TEXT, VALUES, max_size=6))
@example({"a": "\ud83d\ude00"})
def test_whatever_is_written_reads_back_the_same(data: dict[str, Any]) -> None:
    written = codec.encode(data)
    assert written.endswith(b"}\n")
    found = codec.decode(written)
    # A text whose two halves of a pair met on paper is one character afterwards: the same text in UTF-16.
    assert _joined(found) == _joined(data)
    assert json.dumps(found).replace(" ", "") == json.dumps(data).replace(" ", "")


def _joined(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass")
    if isinstance(value, dict):
        return [(_joined(k), _joined(v)) for k, v in value.items()]
    return [_joined(v) for v in value] if isinstance(value, list) else repr(value)


@given(st.text('{}[]",: \t\n\\u0061aid1é', max_size=40))
def test_any_text_is_read_or_refused_with_a_reason(text: str) -> None:
    try:
        data = codec.decode(text.encode())
    except codec.Unreadable as error:
        assert error.reason  # noqa: PT017
    else:
        assert data == json.loads(text)


PAIRS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "id"]), st.sampled_from(["1", '"x\\":"', '{"a":1,"b" :2}', "[1]"]))
)


@given(PAIRS, st.lists(st.sampled_from([":", " :", "\t:", ": ", "\n:"]), min_size=1))
def test_a_doubled_key_is_found_however_it_is_spaced(pairs: list[tuple[str, str]], colons: list[str]) -> None:
    text = ",".join(f'"{k}"{colons[n % len(colons)]}{v}' for n, (k, v) in enumerate(pairs))
    doubled = len({k for k, _ in pairs}) < len(pairs)
    try:
        codec.decode(f"{{{text}}}".encode())
        found = ""
    except codec.Unreadable as error:
        found = error.reason
    assert ("given twice" in found) is doubled
