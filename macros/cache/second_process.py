"""A second process computes a part of a build's results, or of a check's: in an order of its own, while this one
computes them in the build's, until they meet.

It begins as a copy of this one, with all presets read. What fails there, or logs a warning, is computed here once more:
an error is raised and told where it would be without a second process. PROCESSES=1 turns it off.
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
PLACE = 16  # bytes: where its result begins, and its length
NEEDED = 1_000_000_000  # bytes of memory: the copy and what it computes
PATIENCE = 60.0  # seconds for one task, after which the second process is taken for stuck


def is_worthwhile() -> bool:
    """Whether there is a core and memory for a second process, and the system copies a process safely."""
    if sys.platform != "linux" or os.environ.get("PROCESSES") == "1" or threading.active_count() > 1:
        return False
    return len(os.sched_getaffinity(0)) > 1 and available_memory() >= NEEDED and disk.is_cold()


def available_memory() -> int:
    """Bytes of memory that the system can still give; 0 if it does not say."""
    with suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


class SecondProcess:
    """The process, and what it has computed so far."""

    def __init__(self, tasks: Mapping[str, Callable[[], Any]]):
        self.tasks, self.number = tasks, {name: n for n, name in enumerate(tasks)}
        self.states = mmap.mmap(-1, max(len(tasks), 1))
        self.places = mmap.mmap(-1, max(len(tasks), 1) * PLACE)
        self.file = tempfile.TemporaryFile()  # which both processes have open
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a copy of NumPy's threads, which it ends before
            self.process = os.fork()
        if not self.process:
            with suppress(BaseException):
                self._work()
            os._exit(0)

    # there

    def _work(self) -> None:
        """Computes what is free; ends with the process that it is a copy of."""
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
        """What the second process has computed, with its records for the disk; None for what is to be computed here."""
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
        """End the process; nothing more is expected of it."""
        if self._is_alive():
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            self.process = 0
        self.number = {}


class _Complaints(logging.Handler):
    """Counts what would be logged as a warning or more, and keeps it from being written."""

    number = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.number += record.levelno >= logging.WARNING

    def replace_all(self) -> None:
        """Be the only handler of all loggers."""
        for logger in logging.Logger.manager.loggerDict.values():
            if isinstance(logger, logging.Logger):
                logger.handlers, logger.propagate = [], True
        logging.getLogger().handlers = [self]


_under_way: list[SecondProcess] = []


def start(tasks: Mapping[str, Callable[[], Any]]) -> bool:
    """Begin with these tasks, by their names: first those that `computed` will ask for last. Whether there is a second
    process."""
    end()
    if is_worthwhile():
        with suppress(OSError):  # no room for a process or a file: one is enough
            _under_way.append(SecondProcess(tasks))
    return bool(_under_way)


def is_under_way() -> bool:
    """Whether there is a second process."""
    return bool(_under_way)


def computed(name: str, compute: Callable[[], T]) -> T:
    """The result of a task, by whichever process comes to it first."""
    if _under_way and (there := _under_way[-1].result(name)) is not None:
        value, records = there
        disk.take_over(records)
        return value
    return compute()


def end() -> None:
    """After a build, complete or not."""
    while _under_way:
        _under_way.pop().end()
