"""Which cases an exhaustive test takes: another share of them for each commit, and with WHOLE set all.

The whole runs each night and before a release (.github/workflows).
"""

import math
import os
import random
import subprocess
from collections.abc import Callable, Iterable
from typing import TypeVar

from copies import ROOT

T = TypeVar("T")


def _commit() -> str:
    """The commit that is checked out; empty without a history, which is a seed as good as any."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return asked.stdout.strip()


COMMIT = _commit()
WHOLE = bool(os.environ.get("WHOLE"))
CI = bool(os.environ.get("CI"))


def sampled(cases: Iterable[T], share: int, name: str = "") -> list[T]:
    """One of `share` cases, at least one, in their order. The commit chooses them, for each name others."""
    cases = list(cases)
    if WHOLE:
        return cases
    chosen = random.Random(COMMIT + name).sample(range(len(cases)), math.ceil(len(cases) / share))
    return [cases[i] for i in sorted(chosen)]


def fewer(cases: Iterable[T], share: int, name: str = "") -> list[T]:
    """All cases in `.ci/run`; in the test command one of `share`, as `sampled` takes them."""
    return list(cases) if CI else sampled(cases, share, name)


def near_first(cases: Iterable[T], share: int, is_near: Callable[[T], bool], name: str = "") -> list[T]:
    """One of `share` cases: those near the change among them, unless these are more; the commit chooses the rest."""
    cases = list(cases)
    chosen, near = sampled(cases, share, name), [case for case in cases if is_near(case)]
    if len(near) > len(chosen):
        return chosen
    return [*near, *(case for case in chosen if case not in near)][: max(len(chosen), len(near))]
