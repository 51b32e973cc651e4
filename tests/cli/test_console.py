"""What is printed: nothing in a text can pass for a colour or for another line."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from taskgraph.cli.console import clean, clean_lines


def test_nothing_but_what_can_be_seen_comes_through() -> None:
    for code in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code))
        if category[0] == "C" or category in ("Zl", "Zp"):
            assert clean(chr(code)).isascii(), hex(code)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 🚀", "plain é 日本 🚀"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x1b[31m\x9b\x00\x7f", r"\x1b[31m\x9b\x00\x7f"),
        ("\u2028\u202e\ufeff\ud83d\U000e0001", r"\u2028\u202e\ufeff\ud83d\U000e0001"),
    ],
)
def test_how_it_is_shown(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_line_ends_may_stay() -> None:
    assert clean_lines("a\r\nb\n\x1b\rc") == "a\nb\n\\x1b\\rc"
