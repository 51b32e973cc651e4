"""The arrows of the architecture, held by reading the syntax trees of the package: who may import whom, and who may print.

Arrows point down: ``cli → runner, report, check, plan → manager → access → store, executor, config → core → errors``.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import taskgraph

ROOT = Path(taskgraph.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

BELOW: dict[str, set[str]] = {
    "errors": set(),
    "regular": set(),
    "lines": set(),
    "core": {"errors"},
    "config": {"regular", "core", "errors"},
    "store": {"regular", "lines", "core", "errors"},
    "executor": {"regular", "lines", "core", "errors"},
    "access": {"regular", "store", "config", "core", "errors"},
    "manager": {"regular", "access", "store", "executor", "config", "core", "errors"},
    "check": {"regular", "lines", "manager", "store", "config", "core", "errors"},
    "plan": {"manager", "config", "core", "errors"},
    "runner": {"regular", "lines", "manager", "store", "executor", "config", "core", "errors"},
    "report": {"manager", "store", "config", "core", "errors"},
    "mcp": {"runner", "report", "check", "plan", "manager", "store", "config", "core", "errors"},
    "cli": {"mcp", "runner", "report", "check", "plan", "manager", "store", "config", "core", "errors", "__version__"},
    "__main__": {"cli"},
    "__init__": {"manager", "core", "errors"},
}
"""For each part what it may import, besides itself."""

DATA_OF_PEERS = {("report", "taskgraph.runner.outcome")}
"""What a run answers is data, and a report shows it."""

LIBRARIES = {"typer": {"cli"}, "click": {"cli"}, "rich": {"cli", "report"}, "filelock": {"store"},
             "psutil": {"executor"}, "ruamel": {"plan"}, "mcp": {"mcp"}, "distributed": {"executor"}}  # fmt: skip
"""Which parts may lean on a library; others reach it through them."""

PURE = {"__future__", "collections", "datetime", "functools", "heapq", "itertools", "json", "math", "re", "typing"}
"""What the core may use of the standard library: nothing that touches a disk, a clock or a process."""


def module(path: Path) -> str:
    """The dotted name of a file."""
    parts = ["taskgraph", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


MODULES = {module(path): path for path in FILES}


def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(), str(path))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, wherever in it, and the line."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports say where from"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield (full if full in MODULES or node.module == "taskgraph" else str(node.module)), node.lineno


def part(name: str) -> str:
    """The part of the package that a module belongs to."""
    return name.split(".")[1] if "." in name else "__init__"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_down(path: Path) -> None:
    here = part(module(path))
    assert here in BELOW, f"say in this test what {here} may import"
    wrong = [
        f"line {line}: {name}"
        for name, line in imports(path)
        if name.split(".")[0] == "taskgraph"
        and part(name) not in BELOW[here] | {here}
        and (here, name) not in DATA_OF_PEERS
    ]
    assert not wrong, f"{here} must not import {wrong}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_first_what_it_does(path: Path) -> None:
    said = ast.get_docstring(tree(path))
    assert said, "no docstring"
    assert len(said) >= 15
    assert "." in said or len(said.splitlines()) == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_grows_out_of_hand(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 450


def test_the_core_is_pure() -> None:
    impure = []
    for path in (ROOT / "core").glob("*.py"):
        for name, line in imports(path):
            if name.split(".")[0] not in PURE | {"taskgraph"}:
                impure.append(f"{path.name}:{line} imports {name}")
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called in ("open", "print", "input", "now", "utcnow", "today", "exec", "eval"):
                    impure.append(f"{path.name}:{node.lineno} calls {called}")
    assert not impure


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_library_is_used_by_the_part_it_was_chosen_for(path: Path) -> None:
    here = part(module(path))
    for name, line in imports(path):
        top = name.split(".")[0]
        if top in ("taskgraph", *sys.stdlib_module_names):
            continue
        assert top in LIBRARIES, f"line {line}: {top} is in nobody's table"
        assert here in LIBRARIES[top], f"line {line}: {here} must not use {top}"


def test_only_one_file_prints() -> None:
    printers = set()
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                printers.add(path.name)
            if (
                isinstance(node, ast.Attribute)
                and node.attr in ("write", "writelines", "buffer")
                and isinstance(node.value, ast.Attribute)
                and node.value.attr in ("stdout", "stderr", "__stdout__")
            ):
                printers.add(path.name)
    assert printers == {"console.py"}


def test_there_are_no_import_cycles() -> None:
    """Counts imports within functions too: a cycle that is only put off is one."""
    arrows = {name: {n for n, _ in imports(path) if n in MODULES and n != name} for name, path in MODULES.items()}
    done: set[str] = set()

    def walk(name: str, way: list[str]) -> None:
        assert name not in way, f"import cycle: {' → '.join([*way[way.index(name) :], name])}"
        if name not in done:
            for below in sorted(arrows[name]):
                walk(below, [*way, name])
            done.add(name)

    for name in sorted(arrows):
        walk(name, [])


def test_nobody_imports_a_door() -> None:
    doors = [
        f"{name} imports {imported}"
        for name, path in MODULES.items()
        for imported, _ in imports(path)
        if imported.startswith(("taskgraph.cli", "taskgraph.mcp")) and part(name) not in ("cli", "mcp", "__main__")
    ]
    assert not doors


def test_task_files_are_named_and_opened_by_the_store_alone() -> None:
    """Others come to a task file through the manager; `check` looks at one as it stands."""
    named = set()
    for name, path in MODULES.items():
        for node in ast.walk(tree(path)):
            spells = isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("task_")
            if spells or (isinstance(node, ast.Attribute | ast.Name) and "task_path" in ast.unparse(node)):
                named.add(part(name))
    assert named == {"store", "check"}


def test_the_keeper_needs_the_standard_library_alone() -> None:
    """It is started for every run, and outlives it: whatever it imports is paid for each time."""
    keeper = ROOT / "executor" / "keeper.py"
    assert {name.split(".")[0] for name, _ in imports(keeper)} <= sys.stdlib_module_names


def test_importing_the_package_loads_nothing_that_costs_time() -> None:
    heavy = "typer, rich, filelock, asyncio, psutil, tomllib, logging"
    code = f"import sys, taskgraph.manager; print([m for m in '{heavy}'.split(', ') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
