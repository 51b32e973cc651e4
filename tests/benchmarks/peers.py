"""Measure taskgraph beside ninja, GNU make and doit: the same graphs, the same commands, in turn.

    python -m pip install -e '.[bench]'
    python tests/benchmarks/peers.py                                # all, three rounds
    python tests/benchmarks/peers.py --graph wide-1000 --rounds 9   # one graph
    python tests/benchmarks/peers.py --commands                     # short commands alone

Each graph is written anew for every run of every tool, and the disk is synced; neither is timed. Every task
runs `true`, two at a time, and each run must exit with 0; after a run of taskgraph all its task files must
say `completed`. In each round the tools run one after the other, so a ratio compares neighbours in time; what
is shown is the median over the rounds, and of peak memory the highest.

What the columns mean:

- wall: of the whole process, from its start to its end. `per task` is wall divided by the number of tasks.
- cpu: user and system time of the process and all that it waited for. taskgraph's keeper is among them: the
  runner waits for it at its end.
- largest: peak memory of the largest process of the tree, with a floor of about 10 MB (see measure.py).
  own: that of the tool's first process alone, seen every 50 ms; for taskgraph it is the runner. `-` where
  the system does not tell, or the run was too short.

How the peers are called:

- ninja -j2. No output file is ever made, so that every command runs.
- make -j2, all targets phony. make starts a command as plain as `true` without a shell; the others do not.
- doit -n 2 -P thread. Threads are a little faster than doit's default, processes; reporter, verbosity and
  kind of database make no difference.

Then the short commands, each next to `python -c pass`: `get`; `get`, `update` and `complete` by id in a small
and in a large store; and the second `run` of a finished store.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

MEASURE = Path(__file__).with_name("measure.py")
PAIRS_PER_ROUND = 10  # of the short commands, which are noisier

# --- graphs ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Graph:
    """Tasks 1 to n; `upstreams[i]` holds the ids that task i + 1 waits for."""

    name: str
    upstreams: list[list[int]]

    def __len__(self) -> int:
        return len(self.upstreams)

    def items(self) -> Iterator[tuple[int, list[int]]]:
        """Yield each task's id with the ids it waits for."""
        return enumerate(self.upstreams, start=1)


def wide(size: int) -> Graph:
    """Return tasks that wait for nothing."""
    return Graph(f"wide-{size}", [[] for _ in range(size)])


def chain(size: int) -> Graph:
    """Return tasks of which each waits for the one before."""
    return Graph(f"chain-{size}", [[task - 1] if task > 1 else [] for task in range(1, size + 1)])


def layered(layers: int = 10, width: int = 100, fan_in: int = 3) -> Graph:
    """Return layers of tasks; each waits for some, spread out, of the layer before."""
    upstreams: list[list[int]] = [[] for _ in range(width)]
    for layer in range(1, layers):
        before = (layer - 1) * width + 1
        for place in range(width):
            spread = (place + step * width // fan_in for step in range(fan_in))
            upstreams.append(sorted(before + other % width for other in spread))
    return Graph("layered", upstreams)


def diamond(size: int = 2000) -> Graph:
    """Return one task, then many that wait for it, then one that waits for all of those."""
    middle = list(range(2, size + 2))
    return Graph("diamond", [[], *([1] for _ in middle), middle])


GRAPHS = {graph.name: graph for graph in (wide(1000), chain(300), layered(), diamond(), wide(10_000))}

# --- tools ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tool:
    """How to write a graph for a tool, run it, and see that it is done."""

    name: str
    arguments: list[str]
    write: Callable[[Graph, Path], None]
    check: Callable[[Graph, Path], None] = lambda graph, folder: None

    def find(self) -> str | None:
        """Return the program: the one beside this Python, else the one on PATH."""
        beside = Path(sys.executable).with_name(self.name)
        return str(beside) if os.access(beside, os.X_OK) else shutil.which(self.name)


def write_store(graph: Graph, folder: Path) -> None:
    """Write the task files of a store, both sides of every edge."""
    store = folder / ".tasks"
    store.mkdir()
    downstreams: list[list[int]] = [[] for _ in range(len(graph) + 1)]
    for task, upstreams in graph.items():
        for upstream in upstreams:
            downstreams[upstream].append(task)
    for task, upstreams in graph.items():
        (store / f"task_{task}.json").write_text(
            f'{{\n  "id": {task},\n  "subject": "Task {task}",\n  "description": "",\n'
            f'  "status": "pending",\n  "blockedBy": {upstreams},\n  "blocks": {downstreams[task]},\n'
            '  "owner": "",\n  "command": "true"\n}\n',
            encoding="utf-8",
        )
    (store / ".highwatermark").write_text(f"{len(graph)}\n", encoding="utf-8")


def check_store(graph: Graph, folder: Path) -> None:
    """Fail unless every task file says that its task is completed."""
    left = [
        task
        for task, _ in graph.items()
        if json.loads((folder / ".tasks" / f"task_{task}.json").read_bytes())["status"] != "completed"
    ]
    if left:
        raise SystemExit(f"{graph.name}: {len(left)} tasks are not completed, the first is task {left[0]}")


def write_ninja(graph: Graph, folder: Path) -> None:
    """Write build.ninja."""
    rules = ["rule run", "  command = true"]
    rules += [f"build t{task}: run {names(upstreams)}" for task, upstreams in graph.items()]
    (folder / "build.ninja").write_text("\n".join(rules) + "\n", encoding="utf-8")


def write_make(graph: Graph, folder: Path) -> None:
    """Write a Makefile of phony targets."""
    every = names(list(range(1, len(graph) + 1)))
    rules = [f".PHONY: all {every}", f"all: {every}"]
    rules += [f"t{task}: {names(upstreams)}\n\t@true" for task, upstreams in graph.items()]
    (folder / "Makefile").write_text("\n".join(rules) + "\n", encoding="utf-8")


def names(tasks: list[int]) -> str:
    """Return the names of tasks for a file of ninja or make."""
    return " ".join(f"t{task}" for task in tasks)


def write_doit(graph: Graph, folder: Path) -> None:
    """Write dodo.py."""
    (folder / "dodo.py").write_text(
        f"UPSTREAMS = {graph.upstreams}\n\n\n"
        "def task_t():\n"
        "    for task, upstreams in enumerate(UPSTREAMS, start=1):\n"
        "        needs = [f't:{upstream}' for upstream in upstreams]\n"
        "        yield {'name': str(task), 'actions': ['true'], 'task_dep': needs}\n",
        encoding="utf-8",
    )


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("taskgraph", ["run", "-j", "2"], write_store, check_store),
        Tool("ninja", ["-j2"], write_ninja),
        Tool("make", ["-j2"], write_make),
        Tool("doit", ["-n", "2", "-P", "thread"], write_doit),
    )
}

# --- measuring ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """What one whole process cost: seconds, and KiB."""

    wall: float
    cpu: float
    largest: int
    own: int


def measure(command: list[str], folder: Path) -> Cost:
    """Run a command in a folder and return its cost. It must succeed."""
    log = folder.parent / f"{folder.name}.log"
    answer = subprocess.run(
        [sys.executable, "-I", "-S", str(MEASURE), str(log), *command],
        cwd=folder,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        check=True,
    )
    numbers = json.loads(answer.stdout)
    code = numbers.pop("exit")
    if code != 0:
        last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-10:])
        raise SystemExit(f"{' '.join(command)} exited with {code}\n{last}")
    return Cost(**numbers)


def clean_environment() -> dict[str, str]:
    """Return the environment without what would change how a tool works."""
    drop = ("TASKGRAPH_", "MAKE", "MFLAGS", "NINJA_", "DOIT_")
    return {name: value for name, value in os.environ.items() if not name.startswith(drop)}


@contextmanager
def fresh_folder() -> Iterator[Path]:
    """Make a new empty folder for the graph of one run, and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True) as parent:
        folder = Path(parent) / "graph"
        folder.mkdir()
        yield folder


def run_graph(graph: Graph, tool: Tool, program: str) -> Cost:
    """Write a graph, run it, check it, and return what the run cost."""
    with fresh_folder() as folder:
        tool.write(graph, folder)
        os.sync()
        cost = measure([program, *tool.arguments], folder)
        tool.check(graph, folder)
        return cost


def run_rounds(graphs: list[Graph], programs: dict[str, str], rounds: int) -> dict[str, dict[str, list[Cost]]]:
    """Return the costs of each graph and tool, one for each round."""
    costs: dict[str, dict[str, list[Cost]]] = {graph.name: {name: [] for name in programs} for graph in graphs}
    for number in range(1, rounds + 1):
        for graph in graphs:
            for name, program in programs.items():
                say(f"round {number} of {rounds}: {graph.name}, {name}")
                costs[graph.name][name].append(run_graph(graph, TOOLS[name], program))
    return costs


# --- short commands -------------------------------------------------------------------------------------


class Shop:
    """A store of a chain of tasks, on whose first task by-id commands are tried again and again."""

    def __init__(self, program: str, folder: Path, size: int) -> None:
        self.program = program
        self.folder = folder
        write_store(chain(size), folder)
        touched = [folder / ".tasks" / f"task_{task}.json" for task in (1, 2)]
        self.originals = {path: path.read_bytes() for path in touched}

    def time(self, *arguments: str) -> float:
        """Return the wall time of one command, then undo by hand what it did to the task files."""
        wall = measure([self.program, *arguments], self.folder).wall
        for path, content in self.originals.items():
            path.write_bytes(content)
        return wall


def python_start(folder: Path) -> float:
    """Return the wall time of a Python that does nothing."""
    return measure([sys.executable, "-c", "pass"], folder).wall


def time_get(program: str, pairs: int) -> dict[str, float]:
    """Compare `get 1` with a Python that does nothing."""
    say("get")
    with fresh_folder() as folder:
        shop = Shop(program, folder, 10)
        shop.time("get", "1")
        times = [(shop.time("get", "1"), python_start(folder)) for _ in range(pairs)]
    return above_python(times)


def time_second_run(program: str, pairs: int) -> dict[str, float]:
    """Compare a run of a store whose tasks are all completed with a Python that does nothing."""
    say("second run")
    graph, tool = GRAPHS["wide-1000"], TOOLS["taskgraph"]
    command = [program, *tool.arguments]
    with fresh_folder() as folder:
        tool.write(graph, folder)
        measure(command, folder)
        tool.check(graph, folder)
        times = [(measure(command, folder).wall, python_start(folder)) for _ in range(pairs)]
    return above_python(times)


def above_python(times: list[tuple[float, float]]) -> dict[str, float]:
    """Return the medians of pairs (command, Python) and of their differences, in ms."""
    return {
        "command_ms": 1000 * median(command for command, _ in times),
        "python_ms": 1000 * median(python for _, python in times),
        "above_python_ms": 1000 * median(command - python for command, python in times),
    }


def time_by_id(program: str, pairs: int, sizes: tuple[int, int] = (10, 10_000)) -> dict[str, dict[str, float]]:
    """Compare commands on one task in a small and in a large store."""
    answer = {}
    with fresh_folder() as small_folder, fresh_folder() as large_folder:
        small, large = (
            Shop(program, folder, size) for folder, size in zip((small_folder, large_folder), sizes, strict=True)
        )
        os.sync()
        for verb in ("get", "update", "complete"):
            say(f"{verb} by id")
            times = []
            for number in range(pairs + 1):
                more = ["--subject", f"Round {number}"] if verb == "update" else []
                times.append((small.time(verb, "1", *more), large.time(verb, "1", *more)))
            medians = [median(column) for column in zip(*times[1:], strict=True)]  # the first warms up
            answer[verb] = {
                "small_ms": 1000 * medians[0],
                "large_ms": 1000 * medians[1],
                "ratio": medians[1] / medians[0],
            }
    return answer


# --- telling --------------------------------------------------------------------------------------------


def ratio(costs: list[Cost], others: list[Cost], field: str) -> float:
    """Return the median over the rounds of one tool's number by another's."""
    pairs = zip(costs, others, strict=True)
    return float(median(getattr(mine, field) / getattr(other, field) for mine, other in pairs))


def graph_report(graph: Graph, costs: dict[str, list[Cost]]) -> dict[str, Any]:
    """Return the numbers of one graph: of each tool, and taskgraph's ratio to each peer."""
    report: dict[str, Any] = {"tasks": len(graph), "tools": {}, "ratios": {}}
    for name, of_tool in costs.items():
        wall = median(cost.wall for cost in of_tool)
        report["tools"][name] = {
            "wall_s": wall,
            "cpu_s": median(cost.cpu for cost in of_tool),
            "per_task_ms": 1000 * wall / len(graph),
            "largest_mb": max(cost.largest for cost in of_tool) / 1024,
            "own_mb": max(cost.own for cost in of_tool) / 1024,
            "rounds": [asdict(cost) for cost in of_tool],
        }
        if name != "taskgraph" and "taskgraph" in costs:
            report["ratios"][name] = {field: ratio(costs["taskgraph"], of_tool, field) for field in ("wall", "cpu")}
    return report


def growth_report(costs: dict[str, dict[str, list[Cost]]], base: str = "wide-1000") -> dict[str, Any]:
    """Return each tool's time per task on the other graphs by that on the base graph."""
    if base not in costs:
        return {}
    return {
        name: {
            tool: ratio(of_tool, costs[base][tool], "wall") * len(GRAPHS[base]) / len(GRAPHS[name])
            for tool, of_tool in of_graph.items()
        }
        for name, of_graph in costs.items()
        if name != base
    }


def print_report(report: dict[str, Any]) -> None:
    """Print the whole report for people."""
    for name, graph in report["graphs"].items():
        print(f"\n{name}: {graph['tasks']} tasks")
        print(f"  {'':10} {'wall s':>8} {'cpu s':>8} {'per task ms':>12} {'largest MB':>11} {'own MB':>8}")
        for tool, numbers in graph["tools"].items():
            own = f"{numbers['own_mb']:.1f}" if numbers["own_mb"] else "-"
            print(
                f"  {tool:10} {numbers['wall_s']:8.3f} {numbers['cpu_s']:8.3f} {numbers['per_task_ms']:12.3f}"
                f" {numbers['largest_mb']:11.1f} {own:>8}"
            )
        for field in ("wall", "cpu"):
            ratios = [f"{by[field]:.2f} × {peer}" for peer, by in graph["ratios"].items()]
            if ratios:
                print(f"  {field} of taskgraph: {', '.join(ratios)}")
    if report["growth"]:
        print("\nwall per task, against wide-1000")
        for name, tools in report["growth"].items():
            print(f"  {name:10} " + ", ".join(f"{tool} {by:.2f} ×" for tool, by in tools.items()))
    if report["commands"]:
        print_commands(report["commands"])


def print_commands(commands: dict[str, Any]) -> None:
    """Print the numbers of the short commands for people."""
    print("\nshort commands of taskgraph, ms")
    for key, title in (("get", "get 1"), ("second_run", "second run, 1000 tasks")):
        numbers = commands[key]
        print(
            f"  {title:24} {numbers['above_python_ms']:7.1f} above python -c pass"
            f"  ({numbers['command_ms']:.1f} and {numbers['python_ms']:.1f})"
        )
    for verb, numbers in commands["by_id"].items():
        print(
            f"  {verb + ' 1':24} {numbers['small_ms']:7.1f} among 10 tasks,"
            f" {numbers['large_ms']:.1f} among 10000: {numbers['ratio']:.2f} ×"
        )


def say(text: str) -> None:
    """Tell on stderr what is going on."""
    print(text, file=sys.stderr, flush=True)


# --- command line ---------------------------------------------------------------------------------------


def find_programs(wanted: list[str] | None) -> dict[str, str]:
    """Return the program of each tool. One that was asked for must be there; another is left out."""
    programs = {}
    for name in wanted or TOOLS:
        program = TOOLS[name].find()
        if program is not None:
            programs[name] = program
        elif wanted:
            raise SystemExit(f"{name} is not installed")
        else:
            say(f"{name} is not installed and left out")
    return programs


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure taskgraph beside ninja, make and doit.")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often each is run (default 3)")
    parser.add_argument("--graph", action="append", choices=GRAPHS, help="only this graph; may be repeated")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="only this tool; may be repeated")
    parser.add_argument("--commands", action="store_true", help="the short commands; without --graph, they alone")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    return arguments


def main() -> None:
    """Measure what the command line asks for, and print it."""
    arguments = parse_arguments()
    programs = find_programs(arguments.tool)
    everything = not arguments.graph and not arguments.commands
    graphs = [GRAPHS[name] for name in arguments.graph or (GRAPHS if everything else [])]
    costs = run_rounds(graphs, programs, arguments.rounds)
    report: dict[str, Any] = {
        "python": sys.version.split()[0],
        "cpus": os.cpu_count(),
        "programs": programs,
        "rounds": arguments.rounds,
        "graphs": {graph.name: graph_report(graph, costs[graph.name]) for graph in graphs},
        "growth": growth_report(costs),
        "commands": {},
    }
    if "taskgraph" in programs and (everything or arguments.commands):
        program, pairs = programs["taskgraph"], PAIRS_PER_ROUND * arguments.rounds
        report["commands"] = {
            "get": time_get(program, pairs),
            "second_run": time_second_run(program, pairs),
            "by_id": time_by_id(program, pairs),
        }
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        print_report(report)


if __name__ == "__main__":
    main()
