"""The standing attack: what nobody would write, drawn from a seed, against what must hold whatever comes.

Each attack is a module: `draw` makes a case of plain data, `trial` raises where the project does not stand it, and
`smaller` gives cases that may do so too. `python -m tests.fuzz` runs them for as long as one likes.
"""

from __future__ import annotations

import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from macros.engine.errors import MOST, MOST_OF_A_PLACE, Problem, seen

Case = dict[str, Any]

# What every answer keeps to, in seconds of the processor and in bytes above what was there before.
SECONDS, MEMORY = 1.0, 500_000_000


class TooLong(BaseException):
    """The answer took longer than it may; no `except Exception` hides it."""


# How a find of time begins: our own limit, a process's, a browser's.
OF_TIME = TooLong.__name__, "TimeoutExpired", "TimeoutError"


class Find(NamedTuple):
    """A case that the project does not stand, and how that showed."""

    attack: str
    case: Case
    how: str
    details: str

    def __str__(self) -> str:
        return f"{self.attack}: {self.how}: {json.dumps(self.case)[:300]}"


@contextmanager
def within(seconds: float = SECONDS, memory: int | None = MEMORY) -> Iterator[None]:
    """Raise `TooLong` or `MemoryError` where the block takes more."""

    def too_long(*_):
        raise TooLong(f"took longer than {seconds:g} s")

    def not_raised(said):
        """What is raised within a finalizer goes nowhere: once more, a little later."""
        if isinstance(said.exc_value, TooLong):
            signal.setitimer(signal.ITIMER_PROF, 0.01)
        else:
            old_hook(said)

    old_handler = signal.signal(signal.SIGPROF, too_long)
    old_limit = resource.getrlimit(resource.RLIMIT_AS)
    old_hook, sys.unraisablehook = sys.unraisablehook, not_raised
    if memory is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, old_limit[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, old_limit)
        signal.signal(signal.SIGPROF, old_handler)
        sys.unraisablehook = old_hook


def is_one_line(text: str) -> None:
    """Raise unless a message is one line that a terminal shows as it is."""
    assert "\n" not in text and seen(text) == text, f"not as it may stand in a terminal: {text[:300]!r}"
    assert len(text) <= 2 * MOST + MOST_OF_A_PLACE + 100, f"a message of {len(text):,} characters: {text[:200]!r}"
    assert "Traceback" not in text and "object at 0x" not in text, f"an inner error: {text[:300]!r}"


def refused(problem: Problem) -> None:
    """Raise unless a problem is said as problems are."""
    is_one_line(str(problem))


def tried(attack: ModuleType, case: Case) -> Find | None:
    """What comes of a case; None where it is stood. What took too long is tried once more: the machine may have done
    something else meanwhile.
    """
    find = tried_once(attack, case)
    return tried_once(attack, case) if find and find.how.startswith(OF_TIME) else find


def tried_once(attack: ModuleType, case: Case) -> Find | None:
    from .attacks import EVERY

    name = next(name for name, module in EVERY.items() if module is attack)
    with tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True) as folder:
        try:
            attack.trial(case, Path(folder))
        except (Exception, TooLong) as error:
            how = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            return Find(name, case, how, traceback.format_exc())
    return None


def smallest(attack: ModuleType, find: Find, most: int = 60) -> Find:
    """The smallest case that shows the same kind of error, after so many trials."""
    kind, left = find.how.partition(":")[0], most
    while left > 0:
        for case in attack.smaller(find.case):
            left -= 1
            again = tried(attack, case)
            if again and again.how.partition(":")[0] == kind:
                find = again
                break
            if left <= 0:
                break
        else:
            break
    return find


def attack_all(
    attacks: dict[str, ModuleType], seconds: float, seed: int, most_finds: int = 50
) -> tuple[Counter[str], list[Find]]:
    """All attacks in turn for so many seconds: how many cases of each were tried, and one find of each kind."""
    randoms = {name: random.Random(f"{seed} {name}") for name in attacks}
    ends, taken = time.monotonic() + seconds, dict.fromkeys(attacks, 0.0)
    counted: Counter[str] = Counter()
    finds: dict[str, Find] = {}
    while time.monotonic() < ends and len(finds) < most_finds:
        name = min(taken, key=lambda name: taken[name])  # each has an equal share of the time
        start = time.monotonic()
        case = attacks[name].draw(randoms[name])
        find = tried(attacks[name], case)
        if find and _kind(find) not in finds:
            finds[_kind(find)] = smallest(attacks[name], find)
        counted[name] += 1
        taken[name] += time.monotonic() - start
    return counted, list(finds.values())


def _kind(find: Find) -> str:
    """What two finds of one cause have in common: the attack, the error, and the last line of the package; of an answer
    that is not as it must be, the line that says so.
    """
    lines = [line.strip() for line in find.details.splitlines() if "/macros/" in line]
    lines = lines or [line.strip() for line in find.details.splitlines() if "/fuzz/" in line]
    return " ".join([find.attack, find.how.partition(":")[0], *lines[-1:]])
