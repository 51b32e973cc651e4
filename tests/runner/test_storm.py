"""The storm: runners, keepers and writers are killed at random moments, and nothing is lost or done twice.

Each command appends lines to one file, opened for appending, as it begins and as it ends, and holds a lock of its own task
in between, so that a second copy of it would be noticed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter

import psutil
import pytest

from tests.conftest import clean_environment

# Open the task's own lock file, take its lock at once or say that another copy holds it, then work for a moment.
COMMAND = (
    "exec 9>> locks/$TASKGRAPH_TASK_ID; flock -n 9 || echo overlap $TASKGRAPH_TASK_ID $TASKGRAPH_ATTEMPT $$ >> trace; "
    "echo begin $TASKGRAPH_TASK_ID $TASKGRAPH_ATTEMPT $$ >> trace; sleep {nap}; "
    "echo end $TASKGRAPH_TASK_ID $TASKGRAPH_ATTEMPT $$ >> trace"
)
LAYER = 20


class Storm:
    """A graph in layers, workers and writers on it, and a hand that kills.

    Args:
        store: an empty store.
        tasks: how many tasks.
        seed: of all randomness.
        mean: of the seconds that a command takes; many take none.
    """

    def __init__(self, store, tasks: int, seed: int, mean: float) -> None:
        self.store, self.tasks = store, tasks
        self.chance = random.Random(seed)
        (store.folder / "locks").mkdir()
        for n in range(1, tasks + 1):
            above = range((n - 1) // LAYER * LAYER - LAYER + 1, (n - 1) // LAYER * LAYER + 1)
            ups = sorted(self.chance.sample(list(above), 3)) if n > LAYER else []
            nap = 0.0 if self.chance.random() < 0.4 else round(self.chance.uniform(0.0, mean / 0.3), 3)
            store.write(n, COMMAND.format(nap=nap), blockedBy=ups, maxRetries=1000)
        self.said = open(store.folder / "said", "ab")  # noqa: SIM115
        self.runners: list[subprocess.Popen[bytes]] = []
        self.writers: list[subprocess.Popen[bytes]] = []
        self.written: list[tuple[int, str, subprocess.Popen[bytes]]] = []
        self.kills: Counter[str] = Counter()
        self.completed: dict[int, int] = {}

    def spawn(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.store.command(*arguments), cwd=self.store.folder, env=clean_environment(),
            stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.said,
        )  # fmt: skip

    def rage(self, kills: int, seconds: float) -> None:
        """Kill so many processes while the graph is being worked."""
        until_ = time.monotonic() + seconds
        while sum(self.kills.values()) < kills:
            assert time.monotonic() < until_, f"only {self.kills} in {seconds} s"
            self.runners = [p for p in self.runners if p.poll() is None]
            while len(self.runners) < 2:
                self.runners.append(self.spawn("run", "-q", "-j", "3"))
            self.write()
            time.sleep(self.chance.uniform(0.0, 0.2))
            self.note_completed()
            assert len(self.completed) < self.tasks, f"the work was over after {self.kills}"
            self.kill(self.chance.choices(["runner", "keeper", "writer"], [3, 2, 2])[0])

    def write(self) -> None:
        """Begin a command that writes: to a task of the graph, or one that makes another task."""
        n = self.chance.randrange(1, self.tasks + 1)
        key = f"k{len(self.written)}"
        if self.chance.random() < 0.7:
            writer = self.spawn("update", str(n), "--set", f"{key}=1")
            self.written.append((n, key, writer))
        else:
            writer = self.spawn("create", key, "--command", "true", "--max-retries", "1000")
        self.writers.append(writer)

    def kill(self, what: str) -> None:
        """Kill one of a kind, if there is one."""
        self.writers = [p for p in self.writers if p.poll() is None]
        if what == "keeper":
            victims = [p.pid for p in self.keepers()]
        else:
            victims = [p.pid for p in (self.runners if what == "runner" else self.writers)]
        if victims:
            victim = self.chance.choice(victims)
            try:
                os.kill(victim, signal.SIGKILL)
                self.kills[what] += 1
            except ProcessLookupError:
                pass

    def keepers(self) -> list[psutil.Process]:
        """The keepers, found the cheap way: they and the runners are all that has this path in its words."""
        found = []
        for path in (self.store.tasks / "run").glob("*.jsonl"):
            try:
                with open(path, encoding="utf-8") as file:
                    process = psutil.Process(json.loads(file.readline())["pid"])
                if str(path) in process.cmdline():
                    found.append(process)
            except (OSError, ValueError, KeyError, psutil.Error):
                continue
        return found

    def note_completed(self) -> None:
        """Note for each task whose file says completed how often its command had begun by then."""
        done = [n for n in range(1, self.tasks + 1) if n not in self.completed and self.is_completed(n)]
        begun = Counter(self.begun())
        self.completed.update((n, begun[n]) for n in done)

    def is_completed(self, n: int) -> bool:
        return '"status": "completed"' in self.store.path(n).read_text()

    def begun(self) -> list[int]:
        """The task of each beginning, in order."""
        return [int(line.split()[1]) for line in self.store.lines("trace") if line.startswith("begin")]

    def settle(self) -> None:
        """Let the last writers end, end the runners, and do one last run."""
        for process in [*self.writers, *self.runners]:
            process.send_signal(signal.SIGKILL) if process in self.runners else None
            process.wait(30)
        self.note_completed()
        self.store.run("-q", "-j", "20", timeout=120)
        self.said.close()

    def judge(self) -> None:
        """What must hold in the end, whatever was killed."""
        store = self.store
        trace = store.lines("trace")
        assert not [line for line in trace if line.startswith("overlap")]
        assert set(store.statuses().values()) == {"completed"}
        for path in store.tasks.glob("task_*.json"):
            json.loads(path.read_text())
        check = store.cli("check")
        assert check.returncode == 0, check.stdout + check.stderr
        begun = Counter(self.begun())
        again = {n: (count, begun[n]) for n, count in self.completed.items() if begun[n] != count}
        assert not again, f"run again after their completion was recorded: {again}"
        # The one attempt that completed a task is the last that began, and it came to its end.
        ended = {tuple(line.split()[1:3]) for line in trace if line.startswith("end")}
        for n in range(1, self.tasks + 1):
            last = store.read(n)["attempts"][-1]
            assert last["outcome"] == "completed"
            assert (str(n), str(last["number"])) in ended
        # A change that was reported as made is there.
        for n, key, writer in self.written:
            if writer.returncode == 0:
                assert key in store.read(n)["metadata"], f"task {n} lost {key}"
        said = (store.folder / "said").read_text()
        assert "Traceback" not in said, said[-3000:]
        store.wait_until_nothing_lives()


def storm(store, tasks: int, kills: int, seed: int, mean: float, seconds: float) -> None:
    the_storm = Storm(store, tasks, seed, mean)
    try:
        the_storm.rage(kills, seconds)
        the_storm.settle()
    finally:
        for process in [*the_storm.runners, *the_storm.writers]:
            process.kill()
            process.wait()
    the_storm.judge()


def test_twenty_kills(store):
    storm(store, tasks=40, kills=20, seed=1, mean=0.4, seconds=50)


@pytest.mark.slow
def test_three_hundred_kills(store):
    storm(store, tasks=200, kills=300, seed=2, mean=1.0, seconds=240)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 6))
def test_forty_kills(store, seed):
    storm(store, tasks=60, kills=40, seed=seed, mean=0.4, seconds=100)
