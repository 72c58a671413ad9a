"""Costs that papers state, each next to the same figure from the model's own forward pass."""

from __future__ import annotations

from fractions import Fraction

from ...catalogue import presets
from ...catalogue import published_costs as published
from ...counting.conditions import Conditions
from ..kit import rounding, values
from ..kit.arguments import one_of
from ..kit.conventions import caveat
from ..kit.html import Html, block, conventions, html, joined, number, small
from .cells import cost_table, model_name


def published_costs(about: str | None = None) -> Html:
    """Costs that papers state, each next to the same figure from the model's own forward pass; `about` selects cache,
    compute or memory."""
    if about is not None:
        one_of(about, ("cache", "compute", "memory"), "about")
    claims = [claim for claim in published.claims() if about in (None, _subject(claim))]
    rows = []
    for claim in claims:
        ours, printed_digits = compute(claim, claim.cost), len(claim.value.replace(".", "").lstrip("0"))
        computed = rounding.significant(ours, max(3, printed_digits) + bool(claim.differs))
        whole, *part = claim.value.split(".")
        stated = ".".join([f"{int(whole):,}", *part])
        unit = f"{'× ' if claim.unit[0].isdigit() else ''}{claim.unit}"
        apart = ours / claim.stated - 1
        remark = (
            f"differs by {rounding.signed_percent(apart.numerator, apart.denominator)}"
            if claim.differs
            else f"within {claim.within}%"
            if claim.within
            else ""
        )
        rows.append(
            [
                model_name(claim.model),
                joined(filter(None, (claim.what, claim.differs and small(claim.differs))), "<br>"),
                f"{stated} {unit}",
                html("{} {}{}", computed, unit, html("<br>{}", small(remark)) if remark else ""),
                claim.source,
            ]
        )
    columns = ["Model", "What", number("Stated"), number("Computed"), "Where it is stated"]
    exceptions = ", or within what its row says" if any(claim.within for claim in claims) else ""
    others = "; a row that differs is tested to differ" if any(claim.differs for claim in claims) else ""
    return block(
        cost_table("Costs as papers state them, and as the forward passes give them", columns, rows, "Published costs"),
        conventions(
            f"Each computed figure is tested to be within the rounding of the stated one{exceptions}{others}.",
            caveat(claim.model for claim in claims),
        ),
    )


def _subject(claim: published.Claim) -> str:
    return "compute" if "FLOP" in claim.unit else "cache" if "cache" in claim.cost else "memory"


def compute(claim: published.Claim, formula: str) -> Fraction:
    """The forward pass's result for the formula of a claim, in the claim's unit."""
    given = Conditions(claim.context, dtype=claim.dtype)
    slugs = {None: claim.model, "other": claim.other}

    def lookup(owner: str | None, name: str) -> int | Fraction | None:
        slug = slugs.get(owner)
        return values.number(presets.model(slug), name, given=given) if slug else None

    return Fraction(values.compute(formula, lookup)) / claim.scale
