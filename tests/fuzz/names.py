"""Names of models with letters, digits and words changed: one answer, in any case of letters, never a neighbor's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from macros.catalogue import presets
from macros.catalogue.resolving import Meant
from macros.engine.errors import Problem

from . import Case, within
from .texts import text

FEW = 60
SECONDS = 0.5
NAMES = Path(__file__).parent.parent / "catalogue" / "names_of_models.tsv"
CHANGES = ("digit", "word", "strange", "cut", "swapped", "text")
LETTERS = "bcdfghjlmnprstvwz"


@cache
def resolved() -> list[str]:
    """Names of models of the catalog, in formats that are counted, without what an address has besides."""
    rows = [line.split("\t") for line in NAMES.read_text("utf-8").splitlines()]
    return [
        name
        for name, said in rows
        if said[0] not in "-?" and "uncounted" not in said and "//" not in name and "-of-" not in name
    ]


@cache
def known() -> set[str]:
    """Names of which two may be one model's: MiniMax-M1-40k and MiniMax-M1-80k."""
    return {name.lower() for one in presets.names().values() for name in (one.hub, *one.aliases)}


def draw(rng: random.Random) -> Case:
    name = rng.choice(resolved())
    change = rng.choice(CHANGES)
    made = list(name)
    at = rng.randrange(len(made))
    if change == "digit":
        at = rng.choice([i for i, c in enumerate(name) if c.isdigit()] or [0])
        made[at] = rng.choice("0123456789".replace(made[at], ""))
    elif change == "word":
        at = len(name.rpartition("/")[0].partition(":")[0]) + 1 if "/" in name else 0
        at = rng.choice([i for i in range(at, len(name)) if name[i] in "-:"] or [len(name)])
        made.insert(at, "-" + "".join(rng.choices(LETTERS, k=7)))
    elif change == "strange":
        made.insert(at, rng.choice((*"/:@#?&%\\ .\x00\n\u202e\u0130\u00df²٣", "://", "..", "-of-", text(rng)[:50])))
    elif change == "cut":
        made = made[:at]
    elif change == "swapped":
        other = rng.randrange(len(made))
        made[at], made[other] = made[other], made[at]
    else:
        made = list(text(rng))
    return {"name": name, "change": change, "asked": "".join(made)}


def trial(case: Case, folder: Path) -> None:
    asked, was = case["asked"], presets.meant(case["name"])
    with within(SECONDS):
        found = presets.meant(asked)
    assert not (found.slug and found.candidates) and (not found.format or found.slug), found
    assert set(found.candidates) <= set(presets.names()), found
    if asked.isascii():
        assert answer(presets.meant(asked.swapcase())) == answer(found), "small and capital letters differ"
    if case["change"] == "word":
        assert not found.slug, f"{asked!r} is a further word's {found.slug}"
    if case["change"] == "digit" and asked != case["name"] and asked.lower() not in known():
        assert answer(found) != answer(was), f"{asked!r} has the answer of {case['name']!r}"
    if not found.slug:
        try:
            raise presets.unknown(asked)
        except Problem as problem:
            assert "\n" not in str(problem), problem


def answer(found: Meant) -> tuple[str, str, str]:
    return found.slug, found.format, found.why if "not counted" in found.why else ""


def smaller(case: Case) -> Iterator[Case]:
    return iter(())
