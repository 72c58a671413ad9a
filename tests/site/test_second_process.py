"""The second process of a build: what it computes is taken, and what goes wrong there is done here."""

import logging
import os
import signal
import time

import pytest

from macros.cache import disk, second_process
from macros.cache.second_process import SecondProcess, computed

HERE = os.getpid()
log = logging.getLogger("mkdocs.a_module")


def process() -> tuple[str, int]:
    return "a text", os.getpid()


def at_work(tasks):
    second_process._under_way.append(SecondProcess(tasks))


@pytest.fixture(autouse=True)
def ended():
    yield
    second_process.end()


def by(name, compute) -> int:
    """The process that has computed a task."""
    text, number = computed(name, compute)
    assert text == "a text"
    return number


def test_both_compute_until_they_meet():
    def slow():
        time.sleep(0.02)
        return process()

    tasks = {f"page {n}": slow for n in range(20)}
    at_work(dict(reversed(tasks.items())))
    numbers = [by(*task) for task in tasks.items()]
    assert numbers[0] == HERE and numbers[-1] != HERE and len(set(numbers)) == 2
    assert numbers == sorted(numbers, key=lambda number: number != HERE)
    assert by("a page that is no task", process) == HERE


def fails():
    if os.getpid() != HERE:
        raise ValueError("there")
    return process()


def warns():
    log.warning("told once")
    return process()


def dies():
    if os.getpid() != HERE:
        os.kill(os.getpid(), signal.SIGKILL)
    return process()


def stays():
    if os.getpid() != HERE:
        time.sleep(60)
    return process()


@pytest.mark.parametrize("compute", [fails, warns, dies, stays])
def test_what_goes_wrong_there_is_done_here(compute, caplog, monkeypatch):
    monkeypatch.setattr(second_process, "PATIENCE", 0.3)
    at_work({"a page": compute, "another": process})
    while second_process._under_way[-1].states[0] == second_process.FREE:
        time.sleep(0.01)
    assert by("a page", compute) == HERE
    assert len(caplog.records) == (compute is warns)


def test_an_error_is_raised_here():
    def refused():
        raise ValueError("a line")

    at_work({"a page": refused})
    with pytest.raises(ValueError, match="a line"):
        computed("a page", refused)


def test_what_it_computes_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "PRESETS", tmp_path / "presets")
    monkeypatch.setattr(disk, "STARTED", 1 << 62)
    database = tmp_path / ".cache/views.sqlite"

    def kept():
        return disk.get_or_compute("view", "gpt2", process)

    disk.open_store(database, {}, dict)
    assert disk.is_cold()
    at_work({"a page": kept})
    while second_process._under_way[-1].states[0] != second_process.DONE:
        time.sleep(0.01)
    there = by("a page", kept)
    disk.close_store()
    assert there != HERE
    disk.open_store(database, {}, dict)
    assert not disk.is_cold() and disk.get_or_compute("view", "gpt2", process) == ("a text", there)
    disk.close_store()


def test_it_needs_a_core_and_memory(monkeypatch):
    monkeypatch.setattr("threading.active_count", lambda: 1)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(os, "sched_getaffinity", lambda of: {0, 1}, raising=False)
    monkeypatch.setattr(second_process, "available_memory", lambda: 8_000_000_000)
    monkeypatch.delenv("PROCESSES", raising=False)
    assert second_process.is_worthwhile()
    for name, value in {
        "threading.active_count": lambda: 2,
        "sys.platform": "darwin",
        "os.sched_getaffinity": lambda of: {0},
        "macros.cache.second_process.available_memory": lambda: 500_000_000,
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(name, value, raising=False)
            assert not second_process.is_worthwhile()
    monkeypatch.setenv("PROCESSES", "1")
    assert not second_process.is_worthwhile()
