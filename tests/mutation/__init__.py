"""Faults that a user would notice, by hand, and whether the tests see them: `python -m tests.mutation`.

`faults.toml` has them as data: a file, a text that stands in it once, what takes its place, and the kind of fault. Each
is put into a copy with a history of its own, where the tests run that a way of testing chooses, until the first fails.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FAULTS = Path(__file__).parent / "faults.toml"
KINDS = ("bound", "column", "default", "label", "lost warning", "number", "order", "stale cache", "unit")


@dataclass(frozen=True)
class Fault:
    file: str
    old: str
    new: str
    kind: str

    def __str__(self) -> str:
        return f"{self.file}: {self.kind}: {self.old.strip()} → {self.new.strip()}"


def faults() -> list[Fault]:
    return [Fault(**row) for row in tomllib.loads(FAULTS.read_text("utf-8"))["fault"]]


def stale(those: list[Fault]) -> list[str]:
    """The faults that can no longer be put in, each with what is wrong."""
    wrong = []
    for fault, times in Counter(those).items():
        path = ROOT / fault.file
        count = path.read_text("utf-8").count(fault.old) if path.is_file() else 0
        if count != 1 or fault.old == fault.new or fault.kind not in KINDS or times > 1:
            wrong.append(f"{fault} (its text stands {count} times in the file)")
    return wrong


def drop(those: set[str]) -> None:
    """Take faults out of the file, by how they are written."""
    head, *blocks = FAULTS.read_text("utf-8").split("\n[[fault]]\n")
    kept = [block for block in blocks if str(Fault(**tomllib.loads(block))) not in those]
    FAULTS.write_text("\n[[fault]]\n".join([head, *kept]).rstrip() + "\n", "utf-8")


def tenth(those: list[Fault], day: int) -> list[Fault]:
    """Those of a night: within ten nights, each comes once."""
    return those[day % 10 :: 10]
