"""`taskgraph logs`."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.driver import Keyboard
from tests.conftest import StoreBox, clean_environment, until


@pytest.fixture
def logged(tg: Keyboard) -> Keyboard:
    """A task with two attempts, each with a log."""
    tg.store.write(1, "x", status="completed", name="one",
                   attempts=[{"number": 1, "outcome": "failed"}, {"number": 2, "outcome": "completed"}])  # fmt: skip
    for number in (1, 2):
        log(tg.store, "".join(f"{number}: line {i}\n" for i in range(1, 6)).encode(), number)
    return tg


def log(store: StoreBox, block: bytes, attempt: int = 2) -> None:
    """Write the log of an attempt."""
    (store.tasks / "logs" / f"1.{attempt}.log").write_bytes(block)


def test_the_last_attempt_or_the_one_that_is_named(logged: Keyboard) -> None:
    assert logged.ok("logs", "one").lines == [f"2: line {i}" for i in range(1, 6)]
    assert logged.ok("logs", "1", "--attempt", "1").lines == [f"1: line {i}" for i in range(1, 6)]
    assert "attempts: 1, 2" in logged.refused(4, "logs", "1", "--attempt", "3")


def test_json(logged: Keyboard) -> None:
    told = logged.json("logs", "1", "--attempt", "1", "--tail", "1")
    assert told == {"task": 1, "attempt": 1, "path": f"{logged.store.tasks}/logs/1.1.log", "text": "1: line 5\n"}


@pytest.mark.parametrize("count", [0, 1, 3, 5, 99])
def test_tail(logged: Keyboard, count: int) -> None:
    whole = [f"2: line {i}" for i in range(1, 6)]
    assert logged.ok("logs", "1", "--tail", str(count)).lines == whole[len(whole) - min(count, 5) :]


def test_tail_of_a_log_without_a_last_line_end(logged: Keyboard) -> None:
    log(logged.store, b"a\nb\nc")
    assert logged.ok("logs", "1", "--tail", "2").lines == ["b", "c"]
    assert "--tail" in logged.refused(2, "logs", "1", "--tail", "-1")


def test_tail_of_lines_longer_than_a_block(logged: Keyboard) -> None:
    log(logged.store, b"\n".join(letter * 100_000 for letter in (b"a", b"b", b"c")) + b"\n")
    assert [line[0] for line in logged.ok("logs", "1", "--tail", "2").lines] == ["b", "c"]


def test_a_line_that_was_redrawn_is_shown_as_it_stood_in_the_end(logged: Keyboard) -> None:
    redrawn = b"".join(b"\r%5d/20000" % i for i in range(1, 20_001))
    log(logged.store, b"begin\r\n" + redrawn + b"\nend\r\n" + redrawn)
    assert logged.ok("logs", "1").lines == ["begin", "20000/20000", "end", "20000/20000"]
    assert logged.json("logs", "1")["text"].split("\n") == ["begin", "20000/20000", "end", "20000/20000"]


def test_control_characters_are_escaped_and_raw_is_byte_for_byte(logged: Keyboard) -> None:
    block = "\x1b[31mred\x1b[0m\ttab é \u2028\x07".encode() + b"\xff\x00\n no end"
    log(logged.store, block)
    shown = "\\x1b[31mred\\x1b[0m\ttab é \\u2028\\x07\\xff\\x00\n no end\n"
    assert logged.ok("logs", "1").out == shown
    assert logged.store.cli("logs", "1", "--raw", text=False).stdout == block


def test_a_huge_line_comes_out_whole(logged: Keyboard) -> None:
    text = "añ€🚀" * 300_000
    log(logged.store, text.encode())
    assert logged.ok("logs", "1").out == text + "\n"


def test_a_task_without_attempts(tg: Keyboard) -> None:
    tg.ok("create", "a")
    assert "no attempts yet" in tg.refused(4, "logs", "1")


def test_a_log_that_is_gone_is_empty(logged: Keyboard) -> None:
    (logged.store.tasks / "logs" / "1.2.log").unlink()
    assert logged.ok("logs", "1").out == ""
    assert logged.json("logs", "1")["text"] == ""


def test_following_ends_with_the_attempt(store: StoreBox) -> None:
    store.write(1, "echo one; while [ ! -e go ]; do sleep 0.02; done; printf two")
    run = store.start()
    until(lambda: (store.tasks / "logs" / "1.1.log").exists(), "the log")
    with subprocess.Popen(
        store.command("logs", "1", "-f"), cwd=store.folder, env=clean_environment(), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"one\n"
        assert process.poll() is None
        (store.folder / "go").touch()
        assert process.stdout.read() == b"two\n"
        assert process.wait(20) == 0
    assert run.wait(20) == 0
