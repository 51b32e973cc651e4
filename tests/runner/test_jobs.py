"""What a command is given, and what its end means."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import clean_environment, until

TASKGRAPH = f"{sys.executable} -m taskgraph"


@pytest.mark.parametrize(
    ("command", "cwd", "code", "words"),
    [
        ("no-such-program", None, 127, "127"),
        (["no-such-program"], None, 127, "not found"),
        (["./plain-file"], None, 126, "not executable"),
        ("./plain-file", None, 126, "126"),
        ("true", "no/such/folder", 126, "no/such/folder"),
        ("true", "nul\0inside", 126, "folder"),
        (["true", "x" * 3_000_000], None, 126, "too long"),
        ("   ", None, 127, "empty"),
        ([""], None, 127, "empty"),
    ],
    ids=["shell", "list", "mode", "mode in shell", "folder", "odd folder", "too long", "blank", "empty program"],
)
def test_what_can_never_work_is_told_as_such_and_burns_no_retries(store, command, cwd, code, words):
    (store.folder / "plain-file").write_text("#!/bin/sh\n")
    store.write(1, command, maxRetries=3, **({"cwd": cwd} if cwd else {}))
    store.write(2, "true")
    assert store.go().exit_code == 1
    assert store.outcomes(1) == ["failed"]
    assert store.last(1)["exitCode"] == code
    assert words in store.shown(1)["reason"]
    assert store.status(2) == "completed"


def test_code_and_signal_are_kept_apart(store):
    store.write(1, "exit 143")
    store.write(2, "kill -TERM $$")
    store.write(3, "kill -SEGV $$")
    store.go()
    assert store.last(1)["exitCode"] == 143
    assert "signal" not in store.last(1)
    assert store.last(2)["signal"] == "SIGTERM"
    assert "exitCode" not in store.last(2)
    assert store.last(3)["signal"] == "SIGSEGV"
    assert "SIGSEGV" in store.shown(3)["reason"]


def test_standard_input_is_empty_even_where_the_run_has_one(store):
    store.write(1, "cat; echo end")
    store.run(stdin=None, input="not for the command\n")
    assert store.log(1) == b"end\n"


def test_output_goes_to_the_log_byte_for_byte(store):
    store.write(1, r"printf 'a\000\377\033[31m\r\n'; printf 'err' >&2; printf '\n\n'")
    store.run()
    assert store.log(1) == b"a\x00\xff\x1b[31m\r\nerr\n\n"


def test_megabytes_of_output_arrive_whole(store):
    store.write(1, f"{sys.executable} -c \"import sys; sys.stdout.write('0123456789' * 1_000_000)\"")
    store.run()
    assert store.log(1) == b"0123456789" * 1_000_000


def test_a_python_command_is_not_buffered(store, gate):
    store.write(1, f"{sys.executable} -c \"print('hello'); import os; os.system('{gate.wait}')\"")
    run = store.start()
    path = store.tasks / "logs" / "1.1.log"
    until(lambda: path.exists() and path.read_bytes() == b"hello\n", "the line in the log")
    gate.open()
    assert store.ends(run) == 0


def test_the_log_of_each_attempt_is_kept(store):
    store.write(1, "echo try $TASKGRAPH_ATTEMPT; exit 1", maxRetries=2)
    store.go()
    assert [store.log(1, n) for n in (1, 2, 3)] == [b"try 1\n", b"try 2\n", b"try 3\n"]


def test_numbers_go_on_past_a_log_that_an_edit_forgot(store):
    store.write(1, "echo try $TASKGRAPH_ATTEMPT")
    store.go()
    store.write(1, "echo try $TASKGRAPH_ATTEMPT")
    store.go()
    assert store.last(1)["number"] == 2
    assert store.log(1, 1) == b"try 1\n"


# Variables


def test_variables_of_a_command(store):
    shown = ("DIR", "TASK_ID", "TASK_NAME", "ATTEMPT", "VISIT", "OUTPUT", "INPUTS", "HEARTBEAT")
    store.write(3, "; ".join(f'echo "{name}=$TASKGRAPH_{name}"' for name in shown), name="three", visits=2)
    store.run()
    found = dict(line.split("=", 1) for line in store.log(3).decode().splitlines())
    assert found["DIR"] == str(store.tasks)
    assert (found["TASK_ID"], found["TASK_NAME"], found["ATTEMPT"], found["VISIT"]) == ("3", "three", "1", "2")
    assert os.path.dirname(found["OUTPUT"]) == os.path.dirname(found["HEARTBEAT"]) == str(store.tasks / "run")


def test_env_and_cwd_of_a_task(store):
    (store.folder / "deep" / "er").mkdir(parents=True)
    store.write(1, "pwd; echo $COLOUR", cwd="deep/er", env={"COLOUR": "blue", "N": 3})
    store.write(2, "pwd")
    store.run()
    assert store.log(1).decode().split() == [str(store.folder / "deep" / "er"), "blue"]
    assert store.log(2).decode().split() == [str(store.folder)]


def test_env_of_a_task_cannot_pass_it_off_as_another(store):
    store.write(
        1, "echo $TASKGRAPH_TASK_ID.$TASKGRAPH_ATTEMPT", env={"TASKGRAPH_TASK_ID": "9", "TASKGRAPH_ATTEMPT": "9"}
    )
    store.run()
    assert store.log(1) == b"1.1\n"


def test_commands_run_where_the_store_is_whoever_starts_the_run_where(store, tmp_path):
    store.write(1, "pwd")
    subprocess.run(
        store.command("-C", str(store.folder), "run"), cwd=tmp_path, env=clean_environment(), check=True,
        capture_output=True,
    )  # fmt: skip
    assert store.log(1).decode().strip() == str(store.folder)


def test_a_shell_text_saved_with_crlf_is_run_without(store):
    store.write(1, "echo a\r\necho b\r\n")
    store.run()
    assert store.log(1) == b"a\nb\n"


# Results and inputs


def test_results_reach_the_tasks_below_by_name_and_by_id(store):
    store.write(1, """echo '{"price": 3, "who": "Zoë"}' > "$TASKGRAPH_OUTPUT" """, name="flight")
    store.write(2, 'echo 7 > "$TASKGRAPH_OUTPUT"')
    store.write(3, "true")
    store.write(4, 'cat "$TASKGRAPH_INPUTS"', blockedBy=[1, 2, 3])
    store.run()
    price = {"price": 3, "who": "Zoë"}
    assert json.loads(store.log(4)) == {"1": price, "flight": price, "2": 7}
    assert store.read(1)["result"] == price
    assert "result" not in store.read(3)


def test_without_results_the_inputs_are_empty(store):
    store.write(1, 'cat "$TASKGRAPH_INPUTS"')
    store.run()
    assert json.loads(store.log(1)) == {}


@pytest.mark.parametrize("result", ["null", "0", "false", '""', "[]", '"half \\ud800 pair"', "1e400"])
def test_any_json_value_is_a_result(store, result):
    store.write(1, f"""echo '{result}' > "$TASKGRAPH_OUTPUT" """)
    store.write(2, "true", blockedBy=[1])
    code = store.go().exit_code
    if result == "1e400":
        # There is no such number in JSON as others write it.
        assert code in (0, 1)
        return
    assert code == 0
    assert store.read(1).get("result") == json.loads(result)


@pytest.mark.parametrize(
    "spoil",
    [
        'echo "{not json" > "$TASKGRAPH_OUTPUT"',
        ': > "$TASKGRAPH_OUTPUT"',
        'echo NaN > "$TASKGRAPH_OUTPUT"',
        r"""printf '"\377"' > "$TASKGRAPH_OUTPUT" """,
        'mkdir "$TASKGRAPH_OUTPUT"',
        'mkfifo "$TASKGRAPH_OUTPUT"',
        f"""{sys.executable} -c "print('[' * 100000)" > "$TASKGRAPH_OUTPUT" """,
    ],
    ids=["no json", "empty", "NaN", "no utf-8", "a folder", "a pipe", "deep"],
)  # fmt: skip
def test_an_output_that_is_no_json_is_a_failed_attempt(store, spoil):
    store.write(1, f'[ "$TASKGRAPH_ATTEMPT" = 2 ] || {{ {spoil}; }}', maxRetries=1)
    store.write(2, "true")
    assert store.go(max_time=20).exit_code == 0
    assert store.outcomes(1) == ["failed", "completed"]
    first = store.shown(1)["attempts"][0]
    assert "TASKGRAPH_OUTPUT" in first["error"]
    assert first["exitCode"] == 0


def test_an_output_of_a_failed_command_is_no_result(store):
    store.write(1, 'echo 1 > "$TASKGRAPH_OUTPUT"; exit 2')
    store.go()
    assert "result" not in store.read(1)


# Reports from inside


def test_a_report_from_inside_is_settled_by_the_exit(store):
    store.write(1, f"""{TASKGRAPH} complete --result '{{"a": 1}}'; {TASKGRAPH} get 1 --json > during""")
    store.run()
    assert json.loads((store.folder / "during").read_text())["status"] == "in_progress"
    assert store.status(1) == "completed"
    assert store.read(1)["result"] == {"a": 1}


def test_a_failure_reported_from_inside_counts_with_exit_0(store):
    store.write(1, f"{TASKGRAPH} fail --reason 'no seats left'")
    store.run(expect=1)
    assert store.status(1) == "failed"
    assert store.read(1)["reason"] == "no seats left"


def test_a_non_zero_exit_wins_over_a_report(store):
    store.write(1, f"{TASKGRAPH} complete --result 1; exit 5")
    store.run(expect=1)
    assert store.status(1) == "failed"
    assert store.last(1)["exitCode"] == 5
    assert "result" not in store.read(1)


def test_a_report_about_another_task_is_no_report_from_inside(store):
    store.write(1, f"{TASKGRAPH} complete 2")
    store.write(2)
    store.run()
    assert store.statuses() == {1: "completed", 2: "completed"}


def test_the_file_of_a_report_may_hold_anything(store):
    store.write(1, 'echo "[1]" > "${TASKGRAPH_OUTPUT%.out}.report"')
    store.write(2, "true")
    assert store.go().exit_code == 1
    assert store.statuses() == {1: "failed", 2: "completed"}


def test_a_late_report_of_a_superseded_attempt_is_refused(store, gate):
    # The first attempt leaves something in the background that reports when the second is under way.
    late = f"({gate.wait}; {TASKGRAPH} complete --result 1; echo $? >> late) > /dev/null 2>&1 &"
    store.write(
        1,
        f'if [ "$TASKGRAPH_ATTEMPT" = 1 ]; then {late} exit 1; fi; until [ -e late ]; do sleep 0.02; done',
        maxRetries=1,
    )
    run = store.start()
    until(lambda: len(store.shown(1).get("attempts", [])) == 2, "the second attempt")
    gate.open()
    assert store.wait_for("late") == ["6"]
    assert store.ends(run) == 0
    assert "result" not in store.read(1)


def test_a_late_report_about_a_settled_task_is_refused(store, gate):
    late = f"({gate.wait}; {TASKGRAPH} fail; echo $? >> late) > /dev/null 2>&1 &"
    store.write(1, late)
    store.run()
    gate.open()
    assert store.wait_for("late") == ["6"]
    assert store.status(1) == "completed"
