"""`taskgraph check`."""

from __future__ import annotations

import pytest

from tests.cli.driver import Keyboard


def test_a_store_without_faults(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("create", "b", "-b", "1")
    assert tg.ok("check").out == "no faults\n"
    assert tg.json("check") == {"faults": [], "mended": []}


@pytest.fixture
def faulty(tg: Keyboard) -> Keyboard:
    """A store with a fault of each kind."""
    box = tg.store
    for number in range(1, 4):
        tg.ok("create", f"t{number}")
    box.write(1, status="completed", name="twin")
    box.write(2, blockedBy=[1, 9], name="twin", blocks=[77])
    box.path(3).write_text("{\n")
    box.write(4, id=5, blockedBy=[6])
    box.write(6, blockedBy=[4])
    box.write(7, status="failed")
    box.write(8, blockedBy=[7], subject="a\x1b")
    (box.tasks / "task_x.json").write_text("{}")
    (box.tasks / ".task_1.json.tmp").write_text("{")
    (box.tasks / "config.toml").write_text("[defaults]\nmaxRetry = 1\n")
    with open(box.tasks / "events.jsonl", "a") as file:
        file.write("junk\n")
    return tg


def test_every_kind_of_fault_is_named(faulty: Keyboard) -> None:
    told = faulty("check")
    assert told.code == 1
    assert told.err == ""
    kinds = {fault["kind"] for fault in faulty.json("check", code=1)["faults"]}
    assert kinds >= {
        "unreadable", "missing", "dangling", "one_sided", "settled", "incomplete", "id", "cycle", "name", "cascade",
        "config", "leftover", "file_name", "mark", "history",
    }  # fmt: skip
    assert "maxRetries" in told.out
    assert "4 → 6 → 4" in told.out
    assert "(--fix mends this)" in told.out


def test_looking_writes_nothing(faulty: Keyboard) -> None:
    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in faulty.store.tasks.iterdir() if path.is_file()}

    before = files()
    faulty("check")
    assert files() == before


def test_fix_mends_what_can_be_mended_and_names_the_rest(faulty: Keyboard) -> None:
    broken = faulty.store.path(3).read_bytes()
    told = faulty.json("check", "--fix", code=1)
    assert {fault["kind"] for fault in told["mended"]} >= {"dangling", "one_sided", "settled", "incomplete", "cascade"}
    assert not any(fault["mendable"] for fault in told["faults"]), told["faults"]
    assert {fault["kind"] for fault in told["faults"]} >= {"unreadable", "missing", "cycle", "name", "config"}
    assert faulty.store.path(3).read_bytes() == broken
    assert faulty.store.read(1)["blocks"] == [2]
    assert faulty.store.read(8)["status"] == "cancelled"
    assert not (faulty.store.tasks / ".task_1.json.tmp").exists()


def test_a_mended_store_has_no_faults(tg: Keyboard) -> None:
    tg.store.write(1, status="completed")
    tg.store.write(2, blockedBy=[1])
    told = tg.ok("check", "--fix")
    assert told.lines[-1] == "no faults left"
    assert tg.ok("check").out == "no faults\n"


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("[defaults]\nmaxRetries = 'x'\n", "line 2", "maxRetries"),
        ("[defaults]\n\nmaxRetry = 1\n", "line 3", "maxRetries"),
        ("[workers.w]\ntimeout = -1\n", "line 2", "timeout"),
        ("nonsense = 1\n", "line 1", "nonsense"),
        ("[defaults\n", "line 1", "TOML"),
    ],
)
def test_a_faulty_config_is_told_with_line_and_key(tg: Keyboard, text: str, line: str, word: str) -> None:
    tg.ok("create", "a", "--command", "true")
    (tg.store.tasks / "config.toml").write_text(text)
    told = tg.refused(5, "run")
    assert line in told
    assert word in told
    assert line in tg("check").out
    assert tg.store.status(1) == "pending"


def test_a_view_of_the_store_shows_the_rest_beside_a_faulty_config(tg: Keyboard) -> None:
    tg.ok("create", "a")
    tg.ok("claim", "1", "--owner", "ann")
    (tg.store.tasks / "config.toml").write_text("nonsense = 1\n")
    for verb in ("list", "status"):
        told = tg(verb)
        assert "in_progress" in told.out, told
        assert told.code in (0, 5)
