"""JSON lines: the same bytes and values with msgspec and without."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from taskgraph import lines


@pytest.fixture(params=[True, False], ids=["msgspec", "json"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    import msgspec

    assert sys.modules["msgspec"] is msgspec
    if not request.param:
        monkeypatch.delitem(sys.modules, "msgspec")


VALUES = [{"a": 1}, [1, 2.5, None], "ü\n", "\ud800", 7, {"deep": [{"x": "é"}]}, 2**70, {"": True}]


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("value", VALUES, ids=ascii)
def test_a_line_is_one_line_and_reads_back(value: Any) -> None:
    line = lines.dump(value)
    assert line.count(b"\n") == 1
    assert json.loads(line) == value
    assert lines.load(line) == value


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("line", [b"", b"{", b'{"a": 1', b"\xff", b"nul", b'"\x00"'], ids=ascii)
def test_what_is_no_json_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="."):
        lines.load(line)
