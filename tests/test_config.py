"""`config.toml`, written by people: what holds, and what is wrong in which line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taskgraph import config
from taskgraph.core.limits import PLAIN
from taskgraph.errors import EXIT_STORE, StoreError


def load(folder: Path, text: str | bytes) -> Any:
    """The settings that a text gives."""
    (folder / "config.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    return config.load(str(folder))


def test_without_a_file_everything_is_plain(tmp_path: Path) -> None:
    assert config.load(str(tmp_path)) == PLAIN
    assert load(tmp_path, "") == PLAIN
    assert load(tmp_path, "# nothing\n") == PLAIN


def test_everything_that_may_be_said(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        """
        [defaults]
        maxRetries = 1
        lease = 600
        advisor = "./advise.py"
        holdBelow = 0.8
        retryExitCodes = [75]
        onFailure = "Hold"

        [workers.hotel_booker]
        command = ["./book-hotel", "--fast"]
        timeout = 120
        stallTimeout = 30.5
        concurrency = 1
        env = {CITY = "Tokyo"}

        [resources]
        gpu = 2
        """,
    )
    assert settings["defaults"]["maxRetries"] == 1
    assert settings["defaults"]["onFailure"] == "hold"
    assert settings["workers"]["hotel_booker"]["stallTimeout"] == 30.5
    assert settings["workers"]["hotel_booker"]["command"] == ["./book-hotel", "--fast"]
    assert settings["resources"] == {"gpu": 2}


@pytest.mark.parametrize("text", ["\ufeff[resources]\ngpu = 1\n", "[resources]\r\ngpu = 1\r\n"], ids=["BOM", "CRLF"])
def test_what_editors_of_other_systems_write(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text)["resources"] == {"gpu": 1}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[default]\ntimeout = 1", 1, "unknown table or key 'default'"),
        ("# first\ntimeout = 1", 2, "unknown table or key 'timeout'"),
        ("resources = 3", 1, "'resources' is no table; write [resources]"),
        ("[defaults]\n\ntimeout = 'soon'", 3, "[defaults] timeout: 'soon' is no number of seconds"),
        ("[defaults]\nmaxRetries = -1", 2, "[defaults] maxRetries: -1 is no whole number from 0"),
        ("[defaults]\nmaxRetries = true", 2, "[defaults] maxRetries: true is no whole number from 0"),
        ("[defaults]\ntimeout = inf", 2, "[defaults] timeout: inf is no number"),
        ("[defaults]\ntimeout = 2026-05-01", 2, "[defaults] timeout: 2026-05-01 is no number"),
        ("[defaults]\nonFailure = 'panic'", 2, "[defaults] onFailure: 'panic' is no choice (fail, skip, hold, stop)"),
        ("[defaults]\nmaxretries = 1", 2, "[defaults] has the unknown key 'maxretries'; did you mean 'maxRetries'?"),
        ("[defaults]\ncolour = 1", 2, "[defaults] has the unknown key 'colour' (known: timeout"),
        ("[defaults]\ntimeout = 5\n[workers.a]\ntimeout = 5\n[workers.b]\ntimeout = 'soon'", 6, "[workers.b] timeout"),
        ("[workers.a]\ntimeout = 'soon'\n[defaults]\ntimeout = 5", 2, "[workers.a] timeout"),
        ("[workers.timeout]\nlease = 1\ntimeout = -1", 3, "[workers.timeout] timeout"),
        ("workers.a.timeout = 1\nworkers.b.timeout = -1", 2, "[workers.b] timeout"),
        ("[workers]\na = {timeout = -1}", 2, "[workers.a] timeout"),
        ("[workers]\na = 3", 2, "'workers.a' is no table; write [workers.a]"),
        ('[workers."my worker"]\ntimeout = -1', 2, "[workers.my worker] timeout"),
        ("[workers.a]\nstalltimeout = 1", 2, "did you mean 'stallTimeout'?"),
        ("[resources]\ngpu = 1\nnet = 'all'", 3, "[resources] net: 'all' is no whole number from 0"),
        ("[resources]\ngpu = 1.5", 2, "[resources] gpu"),
        ("[defaults]\ntimeout = \n", 2, "no valid TOML"),
        ("[defaults]\n[defaults]\n", 2, "no valid TOML"),
        ("[defaults]\ntimeout = 1\ntimeout = 2\n", 3, "no valid TOML"),
        ("[defaults\n", 1, "no valid TOML"),
        ("x = [" + "[" * 5000, None, "nested too deeply"),
        (b"[defaults]\nadvisor = '\xe9'", 2, "the encoding is not UTF-8"),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, str | bytes) else None,
)
def test_what_is_wrong_is_named_with_its_line_and_key(
    tmp_path: Path, text: str | bytes, line: int | None, words: str
) -> None:
    with pytest.raises(StoreError) as caught:
        load(tmp_path, text)
    error = caught.value
    assert words in error.message
    assert (error.line, error.exit_code) == (line, EXIT_STORE)
    assert error.path == str(tmp_path / "config.toml")
    assert "\n" not in error.message


def test_a_folder_in_its_place_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(StoreError, match="cannot be read"):
        config.load(str(tmp_path))
