"""Patterns over names of modules and tensors, held against Python's `re`: random ones of the syntax that both know."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from macros.counting.modules import Match, Modules
from macros.counting.patterns import Pattern

NAMES = (
    "a",
    "b0",
    "a.b",
    "ab.a0",
    "layers.1.a",
    "model.layers.1.ab",
    "a.a.b_1",
    "model.layers.12.b.a",
    "b.b.b",
    "aab0",
)
ATOMS = ("a", "b", "0", "1", r"\.", ".", "[ab]", "[a-b]", "[0-1]", "[a_.]", r"\d", r"\w", "layers", "model", "_")
LONGEST = 40  # a longer one may have more alternatives than `Modules` takes
FURTHER = ("[^a]", "[^0-9.]", r"\b", "a{2}", "b{1,2}", "[ab]{0,2}")  # of `Pattern` alone


def drawn(rng: random.Random, atoms: tuple[str, ...], depth: int = 0) -> str:
    """A random expression without anchors."""

    def one() -> str:
        if depth < 2 and rng.random() < 0.25:
            return (
                "("
                + rng.choice(("", "?:")) * (atoms is ATOMS)
                + drawn(rng, atoms, depth + 1)
                + ")"
                + rng.choice(("", "?"))
            )
        atom = rng.choice(atoms)
        return (
            atom
            if len(atom) > 2 and "[" != atom[0] or "{" in atom or atom == r"\b"
            else atom + rng.choice(("", "", "", *"*+?"))
        )

    return "|".join("".join(one() for _ in range(rng.randint(1, 4))) for _ in range(rng.choice((1, 1, 1, 2, 3))))


def differing(atoms: tuple[str, ...], is_in: Callable[[str, str], bool], ours: Callable[[str], Callable[[str], bool]]):
    """The expressions and names about which the two disagree, and whether both answers came often."""
    rng, wrong, held, asked = random.Random(51), [], 0, 0
    for _ in range(300):
        expression = next(one for one in iter(lambda: drawn(rng, atoms), "") if len(one) < LONGEST)
        if "|" not in expression:
            expression = rng.choice(("", "^")) + expression + rng.choice(("", "", "$"))
        holds = ours(expression)
        for name in NAMES:
            expected = is_in(expression, name)
            held, asked = held + expected, asked + 1
            if holds(name) != expected:
                wrong.append((expression, name))
    assert 0.1 * asked < held < 0.9 * asked, "a test that sees one answer only"
    return wrong


def as_parts(name: str) -> tuple[str, ...]:
    """A module's name, and what a larger model calls it."""
    return name, f"language_model.{name}", f"model.language_model.{name.removeprefix('model.')}"


@pytest.mark.parametrize("match", [Match.PARTS, Match.WHOLE])
def test_a_module_matches_an_expression_from_its_beginning_as_python_does(match):
    def ours(expression: str) -> Callable[[str], bool]:
        modules = Modules([f"re:{expression}"], match)
        return lambda name: modules.holds([name])

    names = as_parts if match is Match.PARTS else lambda name: (name,)
    assert differing(ATOMS, lambda e, name: any(re.match(e, one, re.A) for one in names(name)), ours) == []


def test_a_tensor_matches_a_pattern_anywhere_as_python_does():
    is_in = lambda expression, name: bool(re.search(expression, name, re.A))  # noqa: E731
    assert differing((*ATOMS, *FURTHER), is_in, lambda e: Pattern(e).is_in) == []
