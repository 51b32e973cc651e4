"""The keeper: a small process that is the parent of the commands of one runner, and outlives it.

It reads jobs as JSON lines on its standard input, starts each in a session of its own, and writes down every end in its
record file before it tells its runner, and the start of everything that lives for longer than a moment. While it lives it holds
a lock on that file. When its runner is gone it stays until its last command has ended. It runs as a script and needs nothing
but the standard library.

A job: ``{"task", "attempt", "argv", "cwd", "env", "log", "watch": {what: path}}``.
A start: ``{"task", "attempt", "pid", "ticks"}``, ticks being the raw start time that the kernel gives.
An end: ``{"task", "attempt", "exit", "signal", "maxRss", "cpu", "lastLine", "left", "at"}``, or ``error`` where nothing could
be started; ``left`` names what of ``watch`` there is.

A command that says nothing and ends well leaves no log: its file becomes that of the next command, since making a file is the
dearest step of a start. A log that something in the background still holds is left alone.

The log of a command is locked through the very descriptor that the command writes to. So, whatever happens to the keeper, the
lock tells whether anything of that attempt still lives.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import json
import os
import select
import signal
import stat
import sys
import time

TYPE_CHECKING = False  # as in typing, whose import would keep every run waiting
if TYPE_CHECKING:
    from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
_decode = json.JSONDecoder().decode
_TAIL = 4096
_LONGEST_LINE = 200
_MOMENT = 0.05
_LOG_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
_RESET = [
    getattr(signal, name)
    for name in ("SIGPIPE", "SIGXFSZ", "SIGINT", "SIGTERM", "SIGQUIT", "SIGCHLD", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
]
_FAULTS: dict[int, tuple[int | None, str]] = {
    errno.ENOENT: (127, "command not found: {program}"),
    errno.ENOTDIR: (127, "command not found: {program}"),
    errno.EACCES: (126, "command not executable: {program}"),
    errno.ENOEXEC: (126, "command not executable: {program} (no program and no '#!' line)"),
    errno.E2BIG: (126, "the command with its environment is too long for this system"),
}
_PASSING = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT)
"""What may be gone at the next try: such an end has no exit code, so it deserves a retry."""
_LOOKED_AT = 2.0
"""Seconds for which others may look at the lock of a log; they take it for a moment."""
_AGAIN = 0.5
"""Seconds between tries to write what a full disk refused."""


class Keeper:
    """Starts jobs and records their ends.

    Args:
        record: the descriptor of the record file, opened for appending and locked.
    """

    def __init__(self, record: int) -> None:
        self.record = record
        self.running: dict[int, tuple[dict[str, Any], int]] = {}
        self.listening = True
        self.base = {k: v for k, v in os.environ.items() if not k.startswith("TASKGRAPH_") or k == "TASKGRAPH_OWNER"}
        self.base["PYTHONUNBUFFERED"] = "1"
        self.home = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
        self.null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self.silent: list[str] = []
        self.young: dict[int, float] = {}
        self.unwritten = b""

    def note(self, entry: dict[str, Any], *, tell: bool) -> None:
        """Write an entry down, then tell the runner, if it still listens."""
        line = _encode(entry).encode("utf-8", "backslashreplace") + b"\n"
        self.unwritten += line
        self.write()
        if tell and self.listening:
            try:
                os.write(1, line)
            except OSError:
                self.listening = False

    def write(self) -> None:
        """Bring to disk what is not there yet; what a full disk refuses is kept, and tried again."""
        try:
            while self.unwritten:
                self.unwritten = self.unwritten[os.write(self.record, self.unwritten) :]
        except OSError:
            return

    def start(self, job: dict[str, Any]) -> None:
        """Start a job, or record why it could not be."""
        try:
            log = self.open_log(job["log"])
        except OSError as error:
            code = None if error.errno in _PASSING else 126
            self.fail(job, -1, code, f"the log {job['log']} cannot be written: {error.strerror}")
            return
        if not job["argv"] or not job["argv"][0]:
            self.fail(job, log, 127, "the command is empty")
            return
        try:
            if job["cwd"]:
                os.chdir(job["cwd"])
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            self.fail(job, log, 126, f"the folder {job['cwd']} cannot be entered: {why}")
            return
        try:
            pid = _spawn(job["argv"], {**self.base, **job["env"]}, self.null, log)
        except (OSError, ValueError) as error:
            number = getattr(error, "errno", 0)
            code = None if number in _PASSING else 126
            code, text = _FAULTS.get(number, (code, f"the command cannot be started: {error}"))
            self.fail(job, log, code, text.format(program=job["argv"][0]))
            return
        finally:
            if job["cwd"]:
                os.fchdir(self.home)
        self.running[pid] = (job, log)
        self.young[pid] = time.monotonic() + _MOMENT

    def note_starts(self) -> float | None:
        """Write down the starts of what has lived for a moment; returns the milliseconds until the next is due, if one is."""
        now = time.monotonic()
        for pid, due in list(self.young.items()):
            if due > now:
                return (due - now) * 1000 + 1
            job = self.running[pid][0]
            del self.young[pid]
            self.note(
                {"task": job["task"], "attempt": job["attempt"], "pid": pid, "ticks": start_ticks(pid)}, tell=False
            )
        return None

    def open_log(self, path: str) -> int:
        """The log of a job, locked: the file of one that said nothing if there is one, else a new file.

        Raises:
            OSError: there can be no such file.
        """
        while self.silent:
            old = self.silent.pop()
            try:
                log = os.open(old, _LOG_FLAGS)
            except OSError:
                continue
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.access(path, os.F_OK):
                    os.rename(old, path)
                    return log
            except OSError:
                pass
            # Something in the background still holds it, or the new name is taken.
            os.close(log)
        try:
            log = os.open(path, _LOG_FLAGS | os.O_CREAT, 0o666)
        except FileNotFoundError:
            # Somebody tidied up while the run went on.
            os.makedirs(os.path.dirname(path), exist_ok=True)
            log = os.open(path, _LOG_FLAGS | os.O_CREAT, 0o666)
        if not stat.S_ISREG(os.fstat(log).st_mode):
            os.close(log)
            raise OSError(errno.EINVAL, "it is no regular file")
        until = time.monotonic() + _LOOKED_AT
        while True:
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return log
            except OSError:
                if time.monotonic() > until:
                    os.close(log)
                    raise
            time.sleep(0.005)

    def clean(self) -> None:
        """Remove the files of commands that said nothing."""
        while self.silent:
            try:
                os.unlink(self.silent.pop())
            except OSError:
                continue

    def fail(self, job: dict[str, Any], log: int, code: int | None, text: str) -> None:
        """Record a job that could not be started, in its log as well."""
        if log >= 0:
            try:  # noqa: SIM105 - as with typing
                os.write(log, f"taskgraph: {text}\n".encode("utf-8", "backslashreplace"))
            except OSError:
                pass  # the end says the same
            os.close(log)
        end = {"task": job["task"], "attempt": job["attempt"], "exit": code, "error": text, "lastLine": "", "left": []}
        self.note({**end, "at": time.time()}, tell=True)

    def reap(self) -> None:
        """Record every job that has ended."""
        while self.running:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid not in self.running:
                continue
            job, log = self.running.pop(pid)
            self.young.pop(pid, None)
            code = os.waitstatus_to_exitcode(status)
            size = os.fstat(log).st_size
            last = _last_line(log, size) if size else ""
            os.close(log)
            if size == 0 and code == 0:
                self.silent.append(job["log"])
            self.note(
                {
                    "task": job["task"],
                    "attempt": job["attempt"],
                    "exit": code if code >= 0 else None,
                    "signal": _signal_name(-code) if code < 0 else None,
                    "maxRss": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
                    "cpu": round(usage.ru_utime + usage.ru_stime, 3),
                    "lastLine": last,
                    "left": [what for what, path in job["watch"].items() if os.access(path, os.F_OK)],
                    "at": time.time(),
                },
                tell=True,
            )

    def serve(self) -> None:
        """Take jobs and record ends until the runner is gone and the last job has ended."""
        wake, waker = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(waker, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(wake, select.POLLIN)
        pending = b""
        hearing = True
        while hearing or self.running or self.unwritten:
            due = self.note_starts() if self.young else None
            ready = {fd for fd, _ in poll.poll(_AGAIN * 1000 if self.unwritten else due)}
            if self.unwritten:
                self.write()
            if wake in ready:
                os.read(wake, 4096)
                self.reap()
            if 0 in ready and hearing:
                block = os.read(0, 1 << 16)
                if block:
                    *lines, pending = (pending + block).split(b"\n")
                    for line in lines:
                        self.start(_decode(line.decode()))
                else:
                    poll.unregister(0)
                    hearing = False
        self.clean()


def _spawn(argv: list[str], env: dict[str, str], null: int, log: int) -> int:
    path = env.get("PATH")
    if path is not None and path != os.environ.get("PATH"):
        # The system looks for a program where the environment of the caller says; the task's own is meant.
        os.environ["PATH"] = path
    try:
        return os.posix_spawnp(
            argv[0],
            argv,
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)],
            setsid=True,
            setsigmask=[],
            setsigdef=_RESET,
        )
    except NotImplementedError:
        # Imported here: only a system whose posix_spawn cannot make a session needs it.
        import subprocess

        return subprocess.Popen(argv, env=env, stdin=null, stdout=log, stderr=log, start_new_session=True).pid


def start_ticks(pid: int) -> int:
    """The raw start time of a process in clock ticks since boot; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            return int(file.read(4096).rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last_line(log: int, size: int) -> str:
    tail = os.pread(log, _TAIL, max(0, size - _TAIL)).decode("utf-8", "replace")
    for line in reversed(tail.replace("\r", "\n").split("\n")):
        if text := "".join(c for c in line if c.isprintable()).strip():
            return text[:_LONGEST_LINE]
    return ""


def _make_record(path: str) -> int:
    """Make and lock a record; once more if somebody tidied it away in between."""
    while True:
        record = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        fcntl.flock(record, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(record), os.stat(path)):
                return record
        except FileNotFoundError:
            pass
        os.close(record)


def main(record_path: str, header: str) -> None:
    """Run a keeper.

    Args:
        record_path: its record file, to be made.
        header: a JSON object, the first line of the record, to which the keeper adds its own identity.
    """
    record = _make_record(record_path)
    keeper = Keeper(record)
    keeper.note({**json.loads(header), "pid": os.getpid(), "ticks": start_ticks(os.getpid())}, tell=True)
    # Nothing here makes cycles of garbage.
    gc.disable()
    keeper.serve()
    # Nothing is left to be tidied up, and the runner waits.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
