"""A second process that computes part of a build's or a check's results: it works through the tasks from the other end
until the two processes meet.

It is forked once all presets are read. A task that fails in the second process or logs a warning is computed again in
the first process, so errors appear where they would without a second process. PROCESSES=1 turns it off.
"""

from __future__ import annotations

import logging
import mmap
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from . import disk

T = TypeVar("T")

FREE, THEIRS, DONE, OURS = range(4)  # the state of a task
PLACE = 16  # bytes: where its result starts, and its length
NEEDED = 1_000_000_000  # bytes of memory: the copy and what it computes
PATIENCE = 60.0  # seconds for one task before the second process counts as stuck


def is_worthwhile() -> bool:
    """Whether there is a core and memory for a second process, and the system forks safely."""
    if sys.platform != "linux" or os.environ.get("PROCESSES") == "1" or threading.active_count() > 1:
        return False
    return len(os.sched_getaffinity(0)) > 1 and available_memory() >= NEEDED and disk.is_cold()


def available_memory() -> int:
    """Bytes of available memory; 0 if the system does not report them."""
    with suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


class SecondProcess:
    """The process and its results so far."""

    def __init__(self, tasks: Mapping[str, Callable[[], Any]]):
        self.tasks, self.number = tasks, {name: n for n, name in enumerate(tasks)}
        self.states = mmap.mmap(-1, max(len(tasks), 1))
        self.places = mmap.mmap(-1, max(len(tasks), 1) * PLACE)
        self.file = tempfile.TemporaryFile()  # open in both processes
        with warnings.catch_warnings():
            # about forking with NumPy's threads, which NumPy ends first
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process = os.fork()
        if not self.process:
            with suppress(BaseException):
                self._work()
            os._exit(0)

    # there

    def _work(self) -> None:
        """Compute the free tasks; end when the parent process does."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        first, silence, complaints = os.getppid(), os.open(os.devnull, os.O_WRONLY), _Complaints()
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        complaints.replace_all()
        at = 0
        for n, compute in enumerate(self.tasks.values()):
            if self.states[n] != FREE or os.getppid() != first:
                continue
            self.states[n] = THEIRS
            records = disk.record()
            complaints.number = 0
            try:
                content = pickle.dumps((compute(), records))
            except Exception:
                content = b""
            if not content or complaints.number:
                self.states[n] = OURS
                continue
            os.pwrite(self.file.fileno(), content, at)
            self.places[n * PLACE : (n + 1) * PLACE] = at.to_bytes(8, "big") + len(content).to_bytes(8, "big")
            self.states[n] = DONE
            at += len(content)

    # here

    def result(self, name: str) -> tuple[Any, list] | None:
        """The second process's result with its records for the disk; None if the task is to be computed here."""
        n = self.number.get(name)
        if n is None:
            return None
        if self.states[n] == FREE:
            self.states[n] = OURS
        end = time.monotonic() + PATIENCE
        while self.states[n] == THEIRS:
            if time.monotonic() > end or not self._is_alive():
                self.end()
                return None
            time.sleep(0.001)
        if self.states[n] != DONE:
            return None
        place = self.places[n * PLACE : (n + 1) * PLACE]
        at, length = int.from_bytes(place[:8], "big"), int.from_bytes(place[8:], "big")
        return pickle.loads(os.pread(self.file.fileno(), length, at))

    def _is_alive(self) -> bool:
        if self.process and os.waitpid(self.process, os.WNOHANG)[0]:
            self.process = 0
        return self.process != 0

    def end(self) -> None:
        """End the process."""
        if self._is_alive():
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            self.process = 0
        self.number = {}


class _Complaints(logging.Handler):
    """Counts warnings and errors instead of writing them."""

    number = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.number += record.levelno >= logging.WARNING

    def replace_all(self) -> None:
        """Replace the handlers of all loggers."""
        for logger in logging.Logger.manager.loggerDict.values():
            if isinstance(logger, logging.Logger):
                logger.handlers, logger.propagate = [], True
        logging.getLogger().handlers = [self]


_under_way: list[SecondProcess] = []


def start(tasks: Mapping[str, Callable[[], Any]]) -> bool:
    """Start on these named tasks, in the reverse order of the calls of `computed`. Returns whether there is a second
    process."""
    end()
    if is_worthwhile():
        with suppress(OSError):  # no memory or disk space: one process is enough
            _under_way.append(SecondProcess(tasks))
    return bool(_under_way)


def is_under_way() -> bool:
    """Whether there is a second process."""
    return bool(_under_way)


def computed(name: str, compute: Callable[[], T]) -> T:
    """The result of a task, from the process that reaches it first."""
    if _under_way and (there := _under_way[-1].result(name)) is not None:
        value, records = there
        disk.take_over(records)
        return value
    return compute()


def end() -> None:
    """End the second process, whether or not the build is complete."""
    while _under_way:
        _under_way.pop().end()
