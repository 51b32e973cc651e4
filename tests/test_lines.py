"""JSON values as lines: whatever was written reads back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from taskgraph import lines

VALUES = [{"a": 1}, [1, 2.5, None], "ü\n", "\ud800", 7, {"deep": [{"x": "é"}]}, 2**70, {"": True}]


@pytest.mark.parametrize("value", VALUES, ids=ascii)
def test_a_line_is_one_line_and_reads_back(value: Any) -> None:
    line = lines.dump(value)
    assert line.count(b"\n") == 1
    assert json.loads(line) == value
    assert lines.load(line) == value


@pytest.mark.parametrize(
    "line", [b"", b"{", b'{"a": 1', b"\xff", b"nul", b'"\x00"', b"[" * 100_000], ids=lambda b: ascii(b)[:20]
)
def test_what_is_no_json_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        lines.load(line)
