"""The entry: help, unknown words, bad usage, and what happens to the streams the program is given."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from taskgraph.cli.app import VERBS
from tests.cli.driver import Keyboard
from tests.conftest import StoreBox, clean_environment, until


def test_version(tg: Keyboard) -> None:
    from taskgraph import __version__

    assert tg.ok("--version").out == f"taskgraph {__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_help_names_every_verb(tg: Keyboard, arguments: tuple[str, ...]) -> None:
    told = tg.ok(*arguments)
    for verb, sentence in VERBS.items():
        assert f"  {verb} " in told.out
        assert sentence.split()[0] in told.out


def test_every_verb_has_help(tg: Keyboard) -> None:
    for verb in VERBS:
        assert tg.ok(verb, "--help").out.startswith(f"Usage: taskgraph {verb}")


def test_a_misspelt_verb_is_answered_with_the_nearest(tg: Keyboard) -> None:
    assert "did you mean 'list'" in tg.refused(2, "lsit")
    assert "taskgraph --help" in tg.refused(2, "zzz")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("list", "--nonsense"), "--nonsense"),
        (("get",), "'TASK'"),
        (("get", "1", "2"), "(2)"),
        (("delete",), "'TASK...'"),
        (("create",), "subject"),
        (("create", "x", "y"), "(y)"),
        (("create", "x", "--timeout"), "--timeout"),
        (("create", "x", "--timeout", "soon"), "'soon'"),
        (("create", "x", "--max-retries", "1.5"), "'1.5'"),
        (("create", "x", "--priority", "high"), "'high'"),
        (("run", "-j", "many"), "'many'"),
        (("run", "-j", "-1"), "--jobs"),
        (("run", "--max-time", "-1"), "--max-time"),
        (("run", "--max-time", "nan"), "--max-time"),
        (("claim", "--owner", "a", "--wait", "-1"), "--wait"),
        (("claim", "--owner", "a", "--wait", "nan"), "--wait"),
        (("claim", "--owner", "a", "--wait", "inf"), "--wait"),
        (("-C",), "-C"),
        (("--nonsense",), "--nonsense"),
        (("list", "--", "x"), "'--'"),
        (("reopen",), "--failed"),
    ],
)
def test_bad_usage_is_one_sentence_that_names_it_and_exit_2(
    tg: Keyboard, arguments: tuple[str, ...], named: str
) -> None:
    tg.ok("create", "something")
    assert named in tg.refused(2, *arguments)
    assert [row["subject"] for row in tg.json("list")] == ["something"]


def test_the_store_may_be_named_before_the_verb(tg: Keyboard, tmp_path: Path) -> None:
    tg.ok("create", "here")
    other = tmp_path / "other"
    other.mkdir()
    for named in (str(other), str(other / ".tasks"), "../other"):
        tg.ok("-C", named, "create", "there")
    assert len(tg.json("-C", str(other), "list")) == 3
    assert len(tg.json("list")) == 1


def test_the_store_may_be_named_by_the_environment(
    tg: Keyboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tg.ok("create", "here")
    monkeypatch.setenv("TASKGRAPH_DIR", str(tmp_path / "other" / ".tasks"))
    assert "no store at" in tg.refused(4, "list")
    tg.ok("create", "there")
    assert [row["subject"] for row in tg.json("list")] == ["there"]
    assert [row["subject"] for row in tg.json("-C", str(tg.store.folder), "list")] == ["here"]


def test_the_store_is_found_upwards(tg: Keyboard, monkeypatch: pytest.MonkeyPatch) -> None:
    tg.ok("create", "above")
    below = tg.store.folder / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert [row["subject"] for row in tg.json("list")] == ["above"]


def test_without_a_store_the_sentence_says_how_to_make_one(
    tg: Keyboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "taskgraph init" in tg.refused(4, "list")
    assert "taskgraph init" in tg.refused(4, "-C", str(tmp_path / "nowhere"), "list")


@pytest.mark.parametrize("verb", ["list", "create", "init", "run", "check"])
def test_a_store_that_is_a_file_is_refused(
    tg: Keyboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    folder = tmp_path / "file"
    folder.mkdir()
    (folder / ".tasks").write_text("kept")
    monkeypatch.chdir(folder)
    assert "not a folder" in tg.refused(5, verb, *(["x"] if verb == "create" else []))
    assert (folder / ".tasks").read_text() == "kept"


def test_a_folder_that_is_gone_is_told_in_one_sentence(tg: Keyboard, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tg.store.folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for command in (("list",), ("get", "1"), ("run",), ("-C", str(tg.store.folder), "list")):
        assert "removed" in tg.refused(4, *command)


def test_the_plain_forms_answer_as_the_full_ones_do(tg: Keyboard) -> None:
    tg.store.write(1, subject="a\x1b", description="d", name="one")
    tg.store.write(2, blockedBy=[1])
    for plain in (
        ["get", "one"],
        ["get", "2", "--json"],
        ["get", "77"],
        ["get", "77", "--json"],
        ["run", "-q", "-j", "1"],
    ):
        seconds = re.compile(r" in [0-9.]+ s")
        short, full = tg(*plain), tg("-C", ".", *plain)
        assert (short.code, short.err) == (full.code, full.err)
        assert seconds.sub("", short.out) == seconds.sub("", full.out)


def test_names_are_usable_wherever_ids_are(tg: Keyboard) -> None:
    tg.ok("create", "First", "--name", "first")
    tg.ok("create", "Second", "--name", "second", "-b", "first")
    tg.ok("create", "Third", "--name", "third", "--blocked-by", "first,second")
    assert tg.store.read(3)["blockedBy"] == [1, 2]
    tg.ok("update", "third", "--remove-blocked-by", "first")
    tg.ok("update", "first", "--add-blocks", "third")
    assert tg.json("get", "third")["blockedBy"] == [2, 1]
    assert tg.json("explain", "third")["task"] == 3
    assert [event["task"] for event in tg.json("events", "second")][:1] == [2]
    assert tg.json("claim", "first", "--owner", "a")["id"] == 1
    tg.ok("heartbeat", "first", "--owner", "a")
    tg.ok("release", "first", "--owner", "a")
    tg.ok("complete", "first")
    tg.ok("fail", "second")
    tg.ok("reopen", "second")
    tg.ok("hold", "second")
    tg.ok("skip", "second")
    tg.ok("cancel", "third")
    assert tg.store.statuses() == {1: "completed", 2: "skipped", 3: "cancelled"}
    assert tg("logs", "third").code == 4
    assert tg.json("delete", "third")["deleted"] == [3]


@pytest.mark.parametrize("form", ["1", "#1", " 1 ", "first"])
def test_the_forms_of_naming_a_task(tg: Keyboard, form: str) -> None:
    tg.ok("create", "First", "--name", "first")
    assert tg.json("get", form)["id"] == 1


@pytest.mark.parametrize("verb", ["get", "complete", "events", "logs", "explain", "run"])
def test_a_task_that_does_not_exist_is_exit_4(tg: Keyboard, verb: str) -> None:
    tg.ok("create", "First")
    for form in ("2", "0", "3.7", "²", "##1", "9" * 40, "nobody", "-"):
        assert "there is no task" in tg.refused(4, verb, form), form


# The streams


def piped(store: StoreBox, script: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which ``$tg`` is the program."""
    env = clean_environment(tg=f"{sys.executable} -m taskgraph")
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {script}"], cwd=store.folder, env=env, capture_output=True, text=True,
        timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("verb", ["list", "list --json", "events", "events --json", "get 1", "status", "logs 2"])
def test_a_closed_pipe_ends_quietly(store: StoreBox, verb: str) -> None:
    for number in range(1, 1001):
        store.write(number, subject=f"task {number} " + "x" * 200)
    store.write(1, description="long\n" * 50_000)
    store.write(2, status="completed", attempts=[{"number": 1, "outcome": "completed"}])
    (store.tasks / "logs" / "2.1.log").write_text("line\n" * 50_000)
    event = '{"id": %d, "at": "2026-01-01T00:00:00.000Z", "event": "created", "task": 1, "text": "' + "x" * 200 + '"}\n'
    (store.tasks / "events.jsonl").write_text("".join(event % number for number in range(1, 1001)))
    done = piped(store, f"$tg {verb} | head -c 10")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout) == 10


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("verb", ["list", "list --json", "create x", "get 1", "events"])
def test_a_full_disk_behind_stdout_is_one_sentence(store: StoreBox, verb: str) -> None:
    store.write(1)
    (store.tasks / "events.jsonl").write_text('{"id": 1}\n')
    done = piped(store, f"$tg {verb} > /dev/full")
    assert done.returncode == 5
    assert done.stderr == "taskgraph: standard output: No space left on device\n"


def test_closed_streams_do_no_harm(store: StoreBox) -> None:
    for closed in (">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"):
        done = piped(store, f"$tg create x {closed}")
        assert (done.returncode, done.stderr) == (0, ""), closed
    assert piped(store, "$tg get 77 2>&-").returncode == 4
    assert piped(store, "$tg get 77 --json >&- 2>&-").returncode == 4
    store.write(9, "echo hello")
    assert piped(store, "$tg run 9 <&- >&- 2>&-").returncode == 0
    assert store.log(9) == b"hello\n"
    # Had a file of the store got the number of a closed stream, what is printed would stand in it.
    assert all(event["event"] for event in store.events())
    assert piped(store, "$tg check").returncode == 0
    assert len(store.statuses()) == 6


def test_a_run_whose_reader_has_gone_runs_on(store: StoreBox) -> None:
    for number in range(1, 6):
        store.write(number, f"echo {number} >> ran", blockedBy=[number - 1] if number > 1 else [])
    for reader in ("true", "head -1"):
        done = piped(store, f"{{ $tg run 2>&1; echo $? > code; }} | {reader}")
        assert "Traceback" not in done.stderr
        assert store.lines("code") == ["0"]
        assert store.lines("ran") == ["1", "2", "3", "4", "5"]


def test_an_interrupt_ends_with_130_and_no_traceback(store: StoreBox) -> None:
    store.write(1, status="in_progress", attempts=[{"number": 1}])
    (store.tasks / "logs" / "1.1.log").write_text("begun\n")
    command = store.command("logs", "1", "-f")
    with subprocess.Popen(
        command, cwd=store.folder, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None  # noqa: PT018
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == b""


def test_a_claim_that_waits_can_be_interrupted(store: StoreBox) -> None:
    process = subprocess.Popen(
        store.command("claim", "--owner", "a", "--wait", "60"), cwd=store.folder, env=clean_environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until(lambda: (store.tasks / ".lock").exists(), "the claim to have looked once")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert (out, err) == (b"", b"")
