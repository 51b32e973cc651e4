"""The keeper as a process: jobs in, records out, whatever becomes of those around it."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from taskgraph.executor import keeper
from taskgraph.executor.records import Record, held
from tests.conftest import PATIENCE, alive, until


class KeeperBox:
    """A keeper that a test talks to as a runner would."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.folder = folder
        self.path = folder / "k.jsonl"
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, str(self.path), '{"keeper": "k"}'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd=folder, **more,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.greeting = json.loads(self.process.stdout.readline())

    def job(self, task: int, *argv: str, attempt: int = 1, cwd: str | None = None, env: dict[str, str] | None = None):
        log = str(self.folder / f"{task}.{attempt}.log")
        watch = {"out": str(self.folder / f"{task}.{attempt}.out")}
        return {
            "task": task, "attempt": attempt, "argv": list(argv), "cwd": cwd, "env": env or {}, "log": log,
            "watch": watch,
        }  # fmt: skip

    def give(self, *jobs: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(job).encode() + b"\n" for job in jobs))

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def does(self, *argv: str, **more: Any) -> dict[str, Any]:
        """Give one job and hear of its end."""
        self.give(self.job(1, *argv, **more))
        return self.hear()

    def log(self, task: int = 1, attempt: int = 1) -> str:
        return (self.folder / f"{task}.{attempt}.log").read_text()

    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]


@pytest.fixture
def box(tmp_path: Path) -> Iterator[KeeperBox]:
    box = KeeperBox(tmp_path)
    yield box
    for stream in (box.process.stdin, box.process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    with suppress(subprocess.TimeoutExpired):
        box.process.wait(5)
    box.process.kill()
    box.process.wait()


def test_greets_when_it_holds_its_lock(box):
    assert box.greeting["pid"] == box.process.pid
    assert box.greeting["ticks"] == keeper.start_ticks(box.process.pid) > 0
    assert held(str(box.path))


def test_an_end_is_told_and_on_record(box):
    end = box.does("/bin/sh", "-c", "echo first; echo last; exit 3")
    assert (end["task"], end["attempt"], end["exit"], end["signal"]) == (1, 1, 3, None)
    assert end["lastLine"] == "last"
    assert end["maxRss"] > 100_000
    assert end["cpu"] >= 0
    assert abs(end["at"] - time.time()) < PATIENCE
    assert box.entries()[-1] == end


def test_the_first_process_of_a_command_is_on_record_while_it_runs(box):
    box.give(box.job(1, "/bin/sh", "-c", "echo $$; exec sleep 60"))
    start = until(lambda: len(box.entries()) > 1 and box.entries()[1], "the start")
    assert (start["task"], start["attempt"]) == (1, 1)
    assert start["ticks"] == keeper.start_ticks(start["pid"]) > 0
    assert int(box.log()) == start["pid"]
    os.kill(start["pid"], signal.SIGKILL)
    assert box.hear()["signal"] == "SIGKILL"


def test_a_signal_is_kept_apart_from_the_code(box):
    end = box.does("/bin/sh", "-c", "kill -KILL $$")
    assert (end["exit"], end["signal"]) == (None, "SIGKILL")
    end = box.does("/bin/sh", "-c", "exit 137", attempt=2)
    assert (end["exit"], end["signal"]) == (137, None)


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["no-such-program"], 127, "command not found: no-such-program"),
        (["./no/such"], 127, "command not found"),
        (["./plain"], 126, "not executable"),
        (["./text"], 126, "no '#!' line"),
        (["."], 126, "not executable"),
        ([], 127, "empty"),
        ([""], 127, "empty"),
        (["/bin/echo", "x" * 3_000_000], 126, "too long"),
        (["/bin/echo", "nul\0inside"], 126, "cannot be started"),
    ],
)
def test_what_cannot_be_started_says_why(box, argv, code, words):
    (box.folder / "plain").write_text("#!/bin/sh\n")
    (box.folder / "text").write_text("echo no interpreter line\n")
    (box.folder / "text").chmod(0o755)
    end = box.does(*argv)
    assert end["exit"] == code
    assert words in end["error"]
    assert words in box.log()
    assert box.does("/bin/true", attempt=2)["exit"] == 0


@pytest.mark.parametrize("cwd", ["no/such/folder", "file", "nul\0inside"])
def test_a_folder_that_cannot_be_entered_is_no_end_of_the_keeper(box, cwd):
    (box.folder / "file").touch()
    end = box.does("/bin/true", cwd=cwd)
    assert end["exit"] == 126
    assert "folder" in end["error"]
    assert box.does("/bin/sh", "-c", "pwd", attempt=2)["lastLine"] == str(box.folder)


def test_a_log_that_cannot_be_made_is_no_end_of_the_keeper(box):
    job = box.job(1, "/bin/true")
    (box.folder / "no").write_text("")
    box.give({**job, "log": str(box.folder / "no" / "log")})
    end = box.hear()
    assert end["exit"] == 126
    assert "log" in end["error"]
    assert box.does("/bin/true", attempt=2)["exit"] == 0


def test_a_moment_for_which_somebody_looks_at_the_lock_of_a_log_is_waited_out(box):
    path = box.folder / "1.1.log"
    path.touch()
    fd = os.open(path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    box.give(box.job(1, "/bin/sh", "-c", "echo ran"))
    # The keeper has the log open and waits for the lock.
    until(lambda: _opens(box.process.pid, path), "the keeper to open the log")
    os.close(fd)
    assert box.hear()["exit"] == 0
    assert box.log() == "ran\n"


def _opens(pid: int, path: Path) -> bool:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            if os.readlink(link) == str(path):
                return True
    return False


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM])
def test_a_system_that_is_full_for_now_is_a_failure_that_deserves_a_retry(tmp_path, monkeypatch, number):
    def spawn(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(keeper, "_spawn", spawn)
    record = os.open(tmp_path / "k.jsonl", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    keeper_ = keeper.Keeper(record)
    keeper_.listening = False
    log = str(tmp_path / "1.1.log")
    keeper_.start({"task": 1, "attempt": 1, "argv": ["true"], "cwd": None, "env": {}, "log": log, "watch": {}})
    os.close(record)
    end = Record(str(tmp_path / "k.jsonl")).read().ended[1, 1]
    assert "exitCode" not in end.facts
    assert os.strerror(number) in end.facts["error"]


def test_standard_input_is_empty_and_output_goes_to_the_log_byte_for_byte(box):
    script = r"""cat; printf 'a\000b\377\r\n'; printf 'err\n' >&2; printf 'no newline'"""
    end = box.does("/bin/sh", "-c", script)
    assert (box.folder / "1.1.log").read_bytes() == b"a\x00b\xff\r\nerr\nno newline"
    assert end["lastLine"] == "no newline"


def test_each_command_has_a_session_of_its_own_and_no_descriptors_of_the_keeper(box):
    script = "import os; print(os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid(), sorted(os.listdir('/proc/self/fd')))"
    box.does(sys.executable, "-c", script)
    # 3 is the listing of the folder itself.
    assert box.log() == "True True ['0', '1', '2', '3']\n"


def test_signals_are_as_a_fresh_program_expects_them(box):
    script = "import signal; print([s.name for s in signal.valid_signals() if signal.getsignal(s) is signal.SIG_IGN])"
    box.does(sys.executable, "-S", "-c", f"import sys; {script}; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))")
    # Python itself ignores these two.
    assert box.log() == "['SIGPIPE', 'SIGXFSZ']\nset()\n"
    assert box.does("/bin/sh", "-c", "kill -PIPE $$", attempt=2)["signal"] == "SIGPIPE"


def test_variables_of_another_task_do_not_leak_in(tmp_path):
    env = {**os.environ, "TASKGRAPH_TASK_ID": "7", "TASKGRAPH_OWNER": "ann", "OTHER": "kept"}
    box = KeeperBox(tmp_path, env=env)
    box.does("/bin/sh", "-c", "echo $TASKGRAPH_TASK_ID-$TASKGRAPH_OWNER-$OTHER-$PYTHONUNBUFFERED-$A", env={"A": "b"})
    assert box.log() == "-ann-kept-1-b\n"
    box.process.communicate(timeout=10)


def test_a_path_that_the_task_sets_is_where_its_program_is_looked_for(box):
    tool = box.folder / "bin" / "own-tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    end = box.does("own-tool", env={"PATH": f"{tool.parent}:{os.environ['PATH']}"})
    assert end["exit"] == 0
    assert box.log() == "found\n"
    assert box.does("own-tool", attempt=2)["exit"] == 127


def test_what_a_command_left_is_named(box):
    end = box.does("/bin/sh", "-c", f"echo 1 > {box.folder}/1.1.out")
    assert end["left"] == ["out"]
    assert box.does("/bin/true", attempt=2)["left"] == []


def test_stays_until_the_last_command_has_ended_and_writes_that_down(box):
    fifo = box.folder / "fifo"
    os.mkfifo(fifo)
    box.give(box.job(1, "/bin/sh", "-c", f"read x < {fifo}; exit 4"))
    until(lambda: len(box.entries()) > 1, "the start")
    box.process.stdin.close()
    box.process.stdout.close()
    assert box.process.poll() is None
    with open(fifo, "w") as file:
        file.write("go\n")
    assert box.process.wait(10) == 0
    assert Record(str(box.path)).read().ended[1, 1].facts["exitCode"] == 4
    assert not held(str(box.path))


def test_takes_up_jobs_that_were_given_just_before_its_runner_went(box):
    box.give(*(box.job(n, "/bin/sh", "-c", f"echo {n}") for n in range(1, 21)))
    box.process.stdin.close()
    box.process.stdout.close()
    assert box.process.wait(10) == 0
    assert {task for task, _ in Record(str(box.path)).read().ended} == set(range(1, 21))


def test_a_command_does_not_wait_for_what_it_left_in_the_background(box):
    end = box.does("/bin/sh", "-c", "sleep 60 & echo $!")
    pid = int(end["lastLine"])
    assert end["exit"] == 0
    assert alive(pid)
    assert held(str(box.folder / "1.1.log"))
    os.kill(pid, signal.SIGKILL)
    until(lambda: not held(str(box.folder / "1.1.log")), "the lock to be let go")


def test_the_log_stays_locked_while_anything_of_the_command_lives_though_its_keeper_is_dead(box):
    box.give(box.job(1, "/bin/sh", "-c", "echo $$; exec sleep 60"))
    until(lambda: len(box.entries()) > 1, "the start")
    pid = box.entries()[1]["pid"]
    box.process.kill()
    box.process.wait()
    assert not held(str(box.path))
    assert held(str(box.folder / "1.1.log"))
    os.kill(pid, signal.SIGKILL)
    until(lambda: not held(str(box.folder / "1.1.log")), "the lock to be let go")


def test_a_record_on_a_full_disk_is_written_once_there_is_room(tmp_path, small_disk):
    box = KeeperBox(small_disk.path)
    job = box.job(1, "/bin/sh", "-c", f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit 5")
    box.give({**job, "log": str(tmp_path / "log")})
    until(lambda: len(box.entries()) > 1, "the start")
    # Fill the page of the record as well, so that the very next line does not fit.
    small_disk.fill(box.path)
    (tmp_path / "go").touch()
    assert box.hear()["exit"] == 5
    box.process.stdin.close()
    box.process.stdout.close()
    assert (1, 1) not in Record(str(box.path)).read().ended
    assert box.process.poll() is None
    small_disk.make_room()
    assert box.process.wait(10) == 0
    assert Record(str(box.path)).read().ended[1, 1].facts["exitCode"] == 5


def test_a_folder_of_logs_that_somebody_removed_is_made_again(box):
    job = box.job(1, "/bin/echo", "said")
    box.give({**job, "log": str(box.folder / "new" / "log")})
    assert box.hear()["exit"] == 0
    assert (box.folder / "new" / "log").read_text() == "said\n"
