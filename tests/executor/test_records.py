"""Records of keepers as others read them, and locks as signs of life."""

from __future__ import annotations

import fcntl
import json
import os

from taskgraph.executor.records import Process, Record, held, system

HEADER = {"keeper": "k", "host": "h", "boot": "b", "ns": "n", "pid": 1, "ticks": 5}


def lines(*entries: dict[str, object]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def end(task: int, **facts: object) -> dict[str, object]:
    return {"task": task, "attempt": 1, "exit": 0, "signal": None, "lastLine": "", "left": ["out"], "at": 9.5, **facts}


def test_a_record_is_read_as_it_grows(tmp_path):
    path = tmp_path / "k.jsonl"
    path.write_bytes(lines(HEADER, {"task": 1, "attempt": 1, "pid": 7, "ticks": 8}))
    record = Record(str(path)).read()
    assert record.started == {(1, 1): Process(7, 8, ("h", "b", "n"))}
    with open(path, "ab") as file:
        file.write(lines(end(1)))
    assert record.read().ended[1, 1].facts == {"exitCode": 0}
    assert record.ended[1, 1].left == ("out",)
    assert record.ended[1, 1].at == 9.5


def test_half_a_line_waits_for_its_other_half(tmp_path):
    path = tmp_path / "k.jsonl"
    whole = lines(HEADER, end(1, exit=3))
    path.write_bytes(whole[:-10])
    record = Record(str(path)).read()
    assert record.ended == {}
    with open(path, "ab") as file:
        file.write(whole[-10:])
    assert record.read().ended[1, 1].facts["exitCode"] == 3


def test_a_broken_line_hides_no_other(tmp_path):
    path = tmp_path / "k.jsonl"
    path.write_bytes(lines(HEADER) + b'{"task": 1, "att\n' + lines(end(2)))
    assert list(Record(str(path)).read().ended) == [(2, 1)]


def test_no_record_is_an_empty_one(tmp_path):
    record = Record(str(tmp_path / "none")).read()
    assert (record.started, record.ended, record.alive) == ({}, {}, False)


def test_held_tells_a_lock_and_takes_none(tmp_path):
    path = tmp_path / "f"
    assert not held(str(path))
    assert not path.exists()
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    assert not held(str(path))
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert held(str(path))
    os.close(fd)
    assert not held(str(path))


def test_the_system_names_host_boot_and_namespace():
    host, boot, namespace = system()
    assert host == os.uname().nodename
    if os.path.exists("/proc/sys/kernel/random/boot_id"):
        assert len(boot) == 36
        assert namespace.startswith("pid:[")
