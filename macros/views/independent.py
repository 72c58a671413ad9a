"""The comparison with torch and transformers, from `catalogue/independent.toml`: a summary, and the types."""

from __future__ import annotations

import string
from collections.abc import Sequence

from ..catalogue.independent import Comparison, comparison
from . import rounding, values
from .arguments import unknown
from .html import Html, block, code, conventions, html, joined, number, table, tag


def independent_summary() -> Html:
    """How many model types were compared in which ways, and of how many a convention explains a difference."""
    made = comparison()
    types = made.types.values()
    steps = [t for t in types if t.step is not None]
    ways = (
        ("Names and shapes of all tensors, and their number", len(types), 0),
        ("Scores for the next token, to one part in 100,000", len(types), 0),
        (f"FLOPs of a prompt of {made.tokens} tokens", len(types), sum(bool(t.prompt_more) for t in types)),
        ("FLOPs of the step after it", len(steps), sum(bool(t.step_more) for t in steps)),
        ("Numbers in the cache after that step", len(steps), sum(bool(t.cache_more) for t in steps)),
    )
    rows = [(what, *map(rounding.grouped, (n, n - explained, explained))) for what, n, explained in ways]
    columns = ["Compared", number("Model types"), number("Equal"), number("Different by a convention")]
    with_what = joined((f"{name} {version}" for name, version in made.versions.items()), ", ")
    missing = (html("{} ({})", code(name), why) for name, why in made.absent.items())
    uncached = joined((code(name) for name, t in made.types.items() if t.step is None), ", ")
    return block(
        table("Against torch and transformers", columns, rows, name="Against torch and transformers"),
        conventions(
            html("Compared on {} with {}.", values.date(made.date), with_what),
            html("Without a cache in transformers’ code, so compared for the prompt alone: {}.", uncached),
            html("Nothing to compare with: {}.", joined(missing, "; ")),
        ),
    )


def independent_table(types: Sequence[str] = ()) -> Html:
    """Torch's and transformers' figures for a small model of each type, with what explains each difference from ours.

    `types` are model types; without them, all.
    """
    made = comparison()
    for name in types:
        if name not in made.types:
            raise unknown(f"unknown model type {name!r}", name, made.types)
    shown = [made.types[name] for name in types or made.types]
    used = {name for t in shown for more in (t.prompt_more, t.step_more, t.cache_more) for name in more}
    letters = dict(zip((name for name in made.conventions if name in used), string.ascii_lowercase))
    columns = ["Model type", number("Parameters"), number("Scores differ by")]
    for what in (f"FLOPs of {made.tokens} tokens", "FLOPs of one more", "Numbers in the cache"):
        columns += [number(what), number("More than here")]
    rows = [_row(made, name, letters) for name in types or made.types]
    said = [html("<strong>{}</strong> {}", letter, made.conventions[name]) for name, letter in letters.items()]
    return block(
        table("torch’s and transformers’ figures", columns, rows, name="Figures of torch and transformers"),
        tag("ul", *(tag("li", sentence) for sentence in said)) if said else "",
    )


def _row(made: Comparison, model_type: str, letters: dict[str, str]) -> list[object]:
    found = made.types[model_type]
    cells: list[object] = [code(model_type), rounding.grouped(found.parameters), _power(found.logits)]
    for theirs, more in (
        (found.prompt, found.prompt_more),
        (found.step, found.step_more),
        (found.cache, found.cache_more),
    ):
        cells += ["–", "–"] if theirs is None else [rounding.grouped(theirs), _more(more, letters)]
    return cells


def _more(more: dict[str, int], letters: dict[str, str]) -> Html | str:
    """A signed difference, with the letters of what explains it; what is equal is 0."""
    if not more:
        return "0"
    total = sum(more.values())
    sign = "+" if total > 0 else ""
    return html(
        "{}{} <strong>{}</strong>", sign, rounding.grouped(total), joined((letters[name] for name in more), " ")
    )


def _power(share: float) -> Html:
    """One digit and a power of ten."""
    digit, _, exponent = f"{share:.0e}".partition("e-")
    return html("{} · 10<sup>−{}</sup>", digit, int(exponent))
