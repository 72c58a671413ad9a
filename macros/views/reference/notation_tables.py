"""The site's words as tables: names of sizes, plain words and the field's terms."""

from __future__ import annotations

from functools import cache

from ...engine.steps import Role
from ..kit.equations import math
from ..kit.html import Html, code, joined, table, tag
from ..kit.mathml import prepare
from ..kit.shapes import tensor_name
from ..words import descriptions, notation


@cache
def notation_table() -> Html:
    """This site's names for sizes: name, letter, meaning, config keys, paper symbols."""
    used = notation.config_sizes() | {"T", "S"}
    prepare(p.strip() for s in notation.SYMBOLS if s.name in used for p in s.paper.split(","))
    rows = [
        [
            tag("var", s.name),
            tag("var", s.letter) if s.letter else "–",
            s.meaning,
            joined(map(code, notation.config_keys(s.name)), ", ") or "–",
            joined((math(p.strip()) for p in s.paper.split(",")), " ") if s.paper else "–",
        ]
        for s in notation.SYMBOLS
        if s.name in used
    ]
    return table(
        "The names of sizes on this site",
        ["Name", "Letter", "Meaning", "Keys in config.json", "In papers"],
        rows,
        name="Notation",
    )


@cache
def terms_table() -> Html:
    """The names of each step or weight, in plain words and in the field's terms, with the names of its tensors."""
    names: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    roles = ((role, said) for role, said in descriptions.steps().items() if isinstance(role, Role))
    of_steps = [said._replace(term=role.term) for role, said in roles]
    for said in (*of_steps, *descriptions.calls().values()):
        names.setdefault((said.title, said.terms), [])
    for name, said in descriptions.weights().items():
        names.setdefault((said.title, said.terms), []).append(name)
    rows = [
        [title, joined(terms, ", "), joined(map(tensor_name, tensors), ", ") or "–"]
        for (title, terms), tensors in names.items()
        if terms
    ]
    return table(
        "Names of steps and weights",
        ["Name", "Also called", "Names of its tensors"],
        rows,
        name="Names of steps and weights",
    )
