"""The comparison with torch and transformers, from `catalogue/independent.toml`: a summary, and the types."""

from __future__ import annotations

import string
from collections.abc import Sequence

from ...catalogue.independent import Compared, comparison
from ..kit import rounding, values
from ..kit.arguments import unknown
from ..kit.html import Html, block, code, conventions, html, joined, number, small, table, tag, text

# Letters for the explanations of differences: a to z, then aa to zz.
LETTERS = (*string.ascii_lowercase, *(2 * letter for letter in string.ascii_lowercase))


def independent_summary() -> Html:
    """The number of model types compared in each way, and the number with a difference that a convention explains."""
    made = comparison()
    types = made.types.values()
    steps = [t for t in types if t.step is not None]
    ways = (
        ("Names, shapes and number of all tensors", len(types), 0),
        ("Scores for the next token, to one part in 100,000", len(types), 0),
        (f"FLOPs of a prompt of {made.tokens} tokens", len(types), sum(bool(t.prompt_more) for t in types)),
        ("FLOPs of the step after it", len(steps), sum(bool(t.step_more) for t in steps)),
        ("Numbers in the cache after that step", len(steps), sum(bool(t.cache_more) for t in steps)),
    )
    rows = [(what, *map(rounding.grouped, (n, n - explained, explained))) for what, n, explained in ways]
    columns = ["Compared", number("Model types"), number("Equal"), number("Different by convention")]
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
    """Torch's and transformers' figures for a small model of each type, with the explanation of each difference from
    ours.

    `types` are model types; all of them by default.
    """
    made = comparison()
    for name in types:
        if name not in made.types:
            raise unknown(f"unknown model type {name!r}", name, made.types)
    shown = [made.types[name] for name in types or made.types]
    used = {name for t in shown for more in (t.prompt_more, t.step_more, t.cache_more) for name in more}
    letters = dict(zip((name for name in made.conventions if name in used), LETTERS))
    columns = ["Model type", *map(number, ("Parameters", "Scores differ by", "Prompt", "Step", "Cache"))]
    rows = [_row(name, made.types[name], letters) for name in types or made.types]
    said = (tag("dt", letter) + tag("dd", made.conventions[name]) for name, letter in letters.items())
    return block(
        table("Figures of torch and transformers", columns, rows, name="Figures of torch and transformers"),
        conventions(
            f"Prompt and step: FLOPs of {made.tokens} tokens and of one more. Cache: the numbers stored after that.",
            "The line below a figure gives its difference from this site’s figure, and the reason.",
        ),
        tag("dl", *said, cls="ep-facts") if letters else "",
    )


def _row(name: str, of: Compared, letters: dict[str, str]) -> list[object]:
    figures = (of.prompt, of.prompt_more), (of.step, of.step_more), (of.cache, of.cache_more)
    return [
        code(name),
        rounding.grouped(of.parameters),
        _power(of.logits),
        *("–" if theirs is None else _figure(theirs, more, letters) for theirs, more in figures),
    ]


def _figure(theirs: int, more: dict[str, int], letters: dict[str, str]) -> Html:
    """A figure; below it, if it is not ours, the signed difference with the letters of its explanation."""
    if not more:
        return text(rounding.grouped(theirs))
    total = sum(more.values())
    why = " ".join(letters[name] for name in more)
    return html(
        "{}<br>{}", rounding.grouped(theirs), small(f"{'+' if total > 0 else ''}{rounding.grouped(total)} {why}")
    )


def _power(share: float) -> Html:
    """One digit and a power of ten."""
    digit, _, exponent = f"{share:.0e}".partition("e-")
    return html("{} · 10<sup>−{}</sup>", digit, int(exponent))
