"""`taskgraph run`: its flags, its lines, its summary and its exit codes; what it does is tested with the runner."""

from __future__ import annotations

import re

import pytest

from tests.cli.driver import Keyboard, in_terminal
from tests.conftest import StoreBox, clean_environment


def test_one_plain_line_for_each_event_and_a_summary(tg: Keyboard) -> None:
    tg.ok("create", "First\x1b", "--command", "true")
    tg.ok("create", "Second", "--name", "two", "--command", "exit 7", "-b", "1")
    tg.ok("create", "Third", "-b", "2")
    told = tg("run", "-j", "1")
    assert told.code == 1
    events = [re.sub(r" \(.*\)$", "", line) for line in told.err.splitlines()]
    assert events == [
        "start     1 First\\x1b", "done      1 First\\x1b", "start     2 two", "FAILED    2 two: exit 7",
        "cancelled 3 Third, since 2 ended",
    ]  # fmt: skip
    assert told.lines[0].startswith("1 cancelled, 1 completed, 1 failed; 2 attempts in ")


def test_the_summary_shows_the_end_of_a_failed_log_and_its_path(tg: Keyboard) -> None:
    tg.ok("create", "x", "--command", "for i in 1 2 3 4 5 6 7; do echo line $i; done; printf '\\033[31mboom'; exit 3")
    told = tg("run", "-q")
    assert told.err == ""
    assert "FAILED task 1: exit 3" in told.lines
    assert "  | line 4" in told.lines
    assert "  | line 3" not in told.lines
    assert r"  | \x1b[31mboom" in told.lines
    assert "  log: .tasks/logs/1.1.log" in told.lines
    assert told.lines[-2] == "first failure: 1 x: exit 3; its log: .tasks/logs/1.1.log"
    assert "reopen --failed" in told.lines[-1]


def test_nothing_to_do(tg: Keyboard) -> None:
    assert tg.ok("run").out.startswith("nothing to do; 0 attempts")
    tg.ok("create", "x", "--command", "true")
    tg.ok("run")
    assert tg.ok("run").out.startswith("1 completed; 0 attempts")


def test_json_is_one_document_and_events_go_to_stderr(tg: Keyboard) -> None:
    tg.ok("create", "a", "--command", "echo noise")
    tg.ok("create", "b", "--command", "exit 1")
    tg.ok("create", "c")
    told = tg("run", "--json")
    assert told.code == 1
    document = told.document
    assert document.pop("seconds") >= 0
    assert document == {"exitCode": 1, "counts": {"completed": 1, "failed": 1, "pending": 1}, "failed": [2],
                        "waiting": [3], "faults": [], "attempts": 2, "reason": ""}  # fmt: skip
    assert "done " in told.err


@pytest.mark.parametrize(
    ("tasks", "code"),
    [
        ([{"command": "true"}], 0),
        ([{"status": "completed"}, {"status": "skipped"}], 0),
        ([{"status": "skipped"}], 0),
        ([{"command": "true"}, {"command": "false"}], 1),
        ([{"command": "false", "onFailure": "skip"}, {"command": "true", "blockedBy": [1]}], 0),
        ([{"command": "false", "onFailure": "hold"}], 3),
        ([{"status": "cancelled"}, {"command": "true"}], 0),
        ([{"status": "cancelled"}, {"command": "true", "blockedBy": [1]}], 0),
        ([{"command": "true"}, {}], 3),
        ([{"command": "true", "blockedBy": [2]}, {"command": "true", "blockedBy": [1]}], 3),
        ([{"command": "true", "blockedBy": [77]}], 3),
        ([{"command": "false"}, {}], 1),
        ([], 0),
    ],
)
def test_exit_codes(tg: Keyboard, tasks: list[dict[str, object]], code: int) -> None:
    for number, fields in enumerate(tasks, 1):
        tg.store.write(number, **fields)  # type: ignore[arg-type]
    told = tg("run", "-q")
    assert told.code == code, told


def test_a_file_that_cannot_be_read_is_exit_5_before_a_failure(tg: Keyboard) -> None:
    tg.store.write(1, "false")
    tg.store.write(2, "touch ran")
    tg.store.path(3).write_text("{")
    told = tg("run", "-q")
    assert told.code == 5
    assert (tg.store.folder / "ran").exists()
    assert "cannot be read: " in told.out


def test_targets_run_with_all_they_wait_for_and_are_judged_alone(tg: Keyboard) -> None:
    tg.store.write(1, "echo 1 >> ran")
    tg.store.write(2, "echo 2 >> ran", blockedBy=[1], name="two")
    tg.store.write(3, "echo 3 >> ran; false")
    tg.store.write(4, "echo 4 >> ran", blockedBy=[2])
    tg.ok("run", "two")
    assert tg.store.lines("ran") == ["1", "2"]
    assert tg("run", "3,4").code == 1
    assert sorted(tg.store.lines("ran")) == ["1", "2", "3", "4"]


def test_a_failed_claim_names_no_log_since_it_has_none(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("claim", "1", "--owner", "ann")
    tg.ok("fail", "1", "--owner", "ann", "--reason", "bad")
    told = tg("run")
    assert told.code == 1
    assert "FAILED task 1: bad" in told.lines
    assert "log" not in told.out


@pytest.mark.parametrize(("name", "text"), [("task_2.json", "{"), ("config.toml", "[defaults]\nmaxRetries = 'x'\n")])
def test_a_dry_run_names_what_cannot_be_read_as_the_run_would(tg: Keyboard, name: str, text: str) -> None:
    tg.ok("create", "a", "--command", "true")
    (tg.store.tasks / name).write_text(text)
    told = tg("run", "-n")
    assert (told.code, told.out) == (5, "1 a: true\n")
    assert name in told.err


def test_a_dry_run_starts_nothing(tg: Keyboard) -> None:
    tg.store.write(1, "touch ran; \x1b", blockedBy=[2])
    tg.store.write(2, ["touch", "a b"], name="two")
    tg.store.write(3)
    told = tg.ok("run", "-n")
    assert told.lines == ["2 two: touch 'a b'", r"1 task 1: touch ran; \x1b"]
    assert told.err == "2 would run; nothing was started\n"
    assert [(row["task"], row["command"]) for row in tg.json("run", "--dry-run")] == [
        (2, ["touch", "a b"]), (1, "touch ran; \x1b"),
    ]  # fmt: skip
    assert tg.ok("run", "-n", "two").lines == ["2 two: touch 'a b'"]
    assert tg.store.statuses() == {1: "pending", 2: "pending", 3: "pending"}


def test_once_runs_only_what_is_ready_now(tg: Keyboard) -> None:
    tg.store.write(1, "echo 1 >> ran")
    tg.store.write(2, "echo 2 >> ran", blockedBy=[1])
    assert tg("run", "--once").code == 3
    assert tg.store.lines("ran") == ["1"]


def test_fail_fast_and_keep_going(tg: Keyboard) -> None:
    for number in range(1, 5):
        tg.store.write(number, f"echo {number} >> ran; exit {int(number == 1)}")
    told = tg("run", "-j", "1", "--fail-fast")
    assert told.code == 1
    assert "ended early: a task failed" in told.lines
    assert tg.store.lines("ran") == ["1"]
    assert tg("run", "-j", "1", "--keep-going").code == 1
    assert tg.store.lines("ran") == ["1", "2", "3", "4"]


def test_a_run_ends_when_its_time_is_up(tg: Keyboard) -> None:
    tg.store.write(1, "sleep 60")
    told = tg("run", "--max-time", "0.3")
    assert told.code == 3
    assert "ended early: the time of 0.3 s is up" in told.lines
    assert (tg.store.status(1), tg.store.outcomes(1)) == ("pending", ["interrupted"])


def test_what_waits_for_a_person_is_named(tg: Keyboard) -> None:
    tg.store.write(1, owner="ann")
    tg.store.write(2, "true", blockedBy=[1])
    told = tg("run")
    assert told.code == 3
    assert told.lines[1:] == ["nothing more can start:", "  1 waits for ann to do it", "  2 waits for 1"]


def test_the_summary_is_appended_to_the_page_of_a_workflow(store: StoreBox) -> None:
    store.write(1, "echo '````'; exit 1")
    (store.folder / "page").write_text("before\n")
    store.run(expect=1, env=clean_environment(GITHUB_STEP_SUMMARY=str(store.folder / "page")))
    page = (store.folder / "page").read_text()
    assert page.startswith("before\n### taskgraph run\n\n````text\n1 failed; 1 attempt in")
    assert page.count("````") == 2
    store.run(expect=1, env=clean_environment(GITHUB_STEP_SUMMARY="/nowhere/page"))


def test_without_a_terminal_there_are_no_colours_and_no_animation(store: StoreBox) -> None:
    store.write(1, "true")
    done = store.run(env=clean_environment(TERM="xterm-256color", FORCE_COLOR="1"))
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr


@pytest.mark.parametrize("columns", [200, 60])
def test_the_live_view(store: StoreBox, columns: int) -> None:
    store.write(1, "echo the last line is this one; while [ ! -e go ]; do sleep 0.02; done", name="worker")
    store.write(2, "while [ ! -e .tasks/logs/1.1.log ]; do sleep 0.02; done; sleep 0.5; touch go", subject="long " * 50)
    drawn = in_terminal(store, "run", "-j", "2", columns=columns)
    assert "0/2 settled, 2 running" in drawn
    assert re.search(r"\d\.\d s .*1 worker", drawn)
    assert "the last line is this one" in drawn
    assert "done      1 worker" in drawn
    assert "2 completed; 2 attempts in " in drawn
    assert "Traceback" not in drawn


def test_the_live_view_without_colours(store: StoreBox) -> None:
    store.write(1, "sleep 0.3")
    drawn = in_terminal(store, "run", NO_COLOR="1")
    assert "1 running" in drawn
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", drawn)


def test_quiet_in_a_terminal_shows_the_summary_alone(store: StoreBox) -> None:
    store.write(1, "true")
    drawn = in_terminal(store, "run", "-q")
    assert drawn.startswith("1 completed; 1 attempt in ")


def test_the_summary_says_how_many_of_the_completed_were_recovered(tg: Keyboard) -> None:
    tg.store.write(1, "test -f ok || { touch ok; false; }", maxRetries=1)
    tg.store.write(2, "true")
    tg.store.write(3, status="cancelled")
    assert tg.ok("run").lines[0].startswith("1 cancelled, 2 completed (1 recovered); 3 attempts in ")
