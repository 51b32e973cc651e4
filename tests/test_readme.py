"""The first two commands of the README: what a newcomer copies is one line, and names what exists."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from taskgraph.cli.app import VERBS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BLOCKS = re.findall(r"^```sh[ \t]*\n(.*?)^```", README, re.M | re.S)


def test_the_first_two_blocks_are_one_line_each() -> None:
    assert len(BLOCKS) >= 2
    for block in BLOCKS[:2]:
        assert block.count("\n") == 1
        assert block.strip()


@pytest.mark.parametrize("number", [0, 1])
def test_what_they_name_exists(number: int) -> None:
    made: set[str] = set()
    for step in BLOCKS[number].split("&&"):
        program, *words = shlex.split(step)
        paths = [word for word in words if not word.startswith("-")]
        match program.rpartition("/")[2]:
            case "python3":
                made.add(paths[-1])
            case "mkdir":
                made.update(paths)
                made.update(str(Path(path).parent) for path in paths)
            case "cp":
                assert (ROOT / paths[-2]).exists(), paths[-2]
                assert {paths[-1], str(Path(paths[-1]).parent)} & (made | {"."})
            case "pip":
                extra = re.fullmatch(r"\.(?:\[(\w+)\])?", paths[-1])
                assert extra is not None
                assert extra[1] is None or extra[1] in PROJECT["optional-dependencies"]
            case "taskgraph":
                assert "taskgraph" in PROJECT["scripts"]
                folder = words[words.index("-C") + 1] if "-C" in words else None
                assert folder is None or folder in made
                assert next(word for word in paths if word != folder) in VERBS
            case "pytest":
                assert any(each.startswith("pytest") for each in PROJECT["optional-dependencies"]["dev"])
            case "cat":
                scripts = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob(".tasks.example/scripts/*.py"))
                assert Path(paths[0]).name in scripts
            case _:
                pytest.fail(f"{program} is a program that this test does not know")
        assert not program.startswith(".venv/") or ".venv" in made


def test_every_verb_that_the_readme_types_exists() -> None:
    typed = re.findall(r"^\$ taskgraph (?:-C \S+ )?([a-z]+)\b", README, re.M)
    assert typed
    assert set(typed) <= set(VERBS)
