"""Numbers in circulation, each next to the result of the forward pass: single claims, and formulas run over the whole
catalog.

A claim is quoted as it was made, in `claims.toml`, and a formula in `formulas.toml`; the arithmetic and the true figure
are formulas over a model's sizes, evaluated here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

import msgspec

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...catalogue.toml_files import Text, checked, read_toml
from ...counting import design
from ...engine.errors import Problem
from ...engine.files import place
from ..charts import catalogue_charts, catalogue_entries
from ..kit import disclosure, rounding, values
from ..kit.arguments import one_of, shown, unknown
from ..kit.conventions import caveat
from ..kit.html import Html, Link, block, conventions, html, joined, linked, number, small, table, tag
from ..kit.shapes import with_symbols

Positive = Annotated[int, msgspec.Meta(gt=0)]

FOLDER = Path(__file__).parent
CLAIMS, FORMULAS = FOLDER / "claims.toml", FOLDER / "formulas.toml"


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A claim: its arithmetic and the true figure as formulas, and the reason for the difference. Several models are
    `a.` and `b.`."""

    said: Text
    claimed: Text
    true: Text
    of: Text  # what is counted
    why: Text
    models: tuple[Text, ...] = ()
    context: Positive | None = None
    digits: Positive | None = None


@cache
def claims() -> dict[str, tuple[Claim, ...]]:
    """Every claim, by the group that a table shows: `life-of-a-tensor`, `width`, `model-size`, `elsewhere`. Raises
    `Problem`."""
    return {
        group: tuple(
            checked(claim, Claim, f"{group}[{n}]", CLAIMS) for n, claim in enumerate(checked(rows, list, group, CLAIMS))
        )
        for group, rows in read_toml(CLAIMS).items()
    }


GPT2_TOKENS = "The capital of France is"
GPT2_IDS_SAID, GPT2_IDS = (464, 3361, 295, 2238, 318), (464, 3139, 286, 4881, 318)


Lookup = Callable[[str | None, str], int | Fraction | None]


def _nothing(owner: str | None, name: str) -> None:
    """The sizes of no model."""


def _sizes(claim: Claim) -> Lookup | None:
    """The sizes of the models in a claim; None if one of them is undisclosed."""
    owners = "abcd" if len(claim.models) > 1 else (None,)
    models = {owner: known for owner, slug in zip(owners, claim.models) if (known := disclosure.model(slug))}
    if not claim.models:
        return _nothing

    def lookup(owner: str | None, name: str) -> int | Fraction:
        if owner is not None and None in models:  # a tensor given by two parts of its name
            return values.number(models[None], f"{owner}.{name}", claim.context)
        if owner not in models:
            raise Problem(f"the claim “{claim.said}” names the model {owner!r}", f"correct {place(CLAIMS)}")
        return values.number(models[owner], name, claim.context)

    return lookup if len(models) == len(claim.models) else None


def amount(figure: int | Fraction, digits: int | None = None) -> str:
    """A figure of a claim, formatted; whole numbers keep every digit."""
    return values.formatted(figure, digits=digits if Fraction(figure).denominator != 1 else None)


def difference(claimed: int | Fraction, true: int | Fraction) -> Html | str:
    """The error of a claim: as a number, and relative to the true figure."""
    if claimed == true:
        return "none"
    more = Fraction(claimed) - true
    share = off(Fraction(claimed) / true) if true else ""
    return html("+" if more > 0 else "") + html("{}<br>({})", amount(more, 3), share)


def off(ratio: Fraction) -> str:
    """The size of an error: in percent, or as a factor if that is clearer."""
    if ratio >= 3:
        return f"{rounding.significant(ratio)} times too much"
    return rounding.signed_percent((ratio - 1).numerator, (ratio - 1).denominator)


def arithmetic(expression: str) -> str:
    """A formula in the usual notation."""
    grouped = re.sub(r"\d{4,}", lambda m: f"{int(m[0]):,}", expression)
    powers = re.sub(r"\s*\*\*\s*(\d)", lambda m: "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(m[1])], grouped)
    return powers.replace(" * ", " × ").replace(" / ", " ÷ ").replace(" - ", " − ")


def roomy(content: Html, why: str) -> Html:
    """A cell's text, wide enough to be read in a table that scrolls, and below it the reason."""
    return tag("div", content, cls="ep-roomy") + tag("div", with_symbols(why), cls="ep-range ep-why")


def claims_table(group: str, link: Link | None = None) -> Html:
    """Claims next to computed figures, one row each: `life-of-a-tensor`, `width`, `model-size`, `elsewhere`."""
    if group not in claims():
        raise unknown(f"unknown group of claims {group!r}", group, claims())
    return table(
        f"{len(claims()[group])} claims",
        ["Claim, and why it is right or wrong", number("Claimed"), number("Computed"), number("Difference")],
        [_claim(claim, link) for claim in claims()[group]],
        name=f"Claims and computed figures: {group.replace('-', ' ')}",
        cls="ep-table ep-claims",
    )


def _claim(claim: Claim, link: Link | None) -> list:
    lookup = _sizes(claim)
    claimed = values.compute(claim.claimed, lookup or _nothing)
    is_plain = re.fullmatch(r"\d+( \* 10 \*\* \d)?", claim.claimed)
    worked = "" if is_plain else html("<br>{}", small(with_symbols(arithmetic(claim.claimed))))
    names = joined((linked(presets.preset(s).name, s, link) for s in claim.models), ", ")
    context = f" at a context of {claim.context:,}" if claim.context else ""
    of = html("{}{}{}{}", with_symbols(claim.of), context, html(": ") if names else "", names)
    said = html("“{}”{}<br>{}", with_symbols(claim.said), worked, small(of))
    if lookup is None:
        return [roomy(said, claim.why), amount(claimed, claim.digits), disclosure.UNDISCLOSED, "unknown"]
    true = values.compute(claim.true, lookup)
    why = re.sub(r"\{(.+?)\}", lambda m: amount(values.compute(m[1], lookup)), claim.why)
    return [roomy(said, why), amount(claimed, claim.digits), amount(true, claim.digits), difference(claimed, true)]


def token_ids_claim() -> Html:
    """The claimed token ids of the sentence next to GPT-2's actual ones, and how many differ."""
    wrong = sum(a != b for a, b in zip(GPT2_IDS_SAID, GPT2_IDS))
    said = [tag("strong", a) if a != b else a for a, b in zip(GPT2_IDS_SAID, GPT2_IDS)]
    return table(
        html("Token ids: {} of {} are another token’s", wrong, len(GPT2_IDS)),
        ["Token", *map(number, GPT2_TOKENS.split())],
        [["said", *said], ["GPT-2’s tokenizer", *GPT2_IDS]],
        name="Token ids",
    )


# Formulas over the whole catalog


class Formula(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A formula in circulation: its usual notation, its expression over sizes, the figure that it should give, its
    omissions."""

    title: Text
    claimed: Text
    true: Text
    of: Text
    why: Text
    needs: Text | None = None  # a size that a model must have for the formula to apply
    context: Positive | None = None
    assumes: tuple[Text, ...] = ()  # differences of sizes that are 0 in the models that the formula was made for


@cache
def formulas() -> dict[str, Formula]:
    """Every formula in circulation by its key, such as `12LD2`. Raises `Problem`."""
    return {key: checked(formula, Formula, key, FORMULAS) for key, formula in read_toml(FORMULAS).items()}


def formula_of(key: str) -> Formula:
    """The formula with this key. Raises `Problem` with the nearest."""
    if key not in formulas():
        raise unknown(f"unknown formula {key!r}", key, formulas())
    return formulas()[key]


def _size(model: Model, name: str, context: int | None) -> int | Fraction:
    """A size as a calculator reads it from a config, with the usual default for a missing one."""
    sizes = model.counts.values()
    if name == "n_layers":
        return design.n_layers(model.counts)
    if name == "n_kv_heads" and name not in sizes:
        return sizes["n_heads"]
    if name == "d_head" and name not in sizes:
        return Fraction(sizes["d_model"], sizes["n_heads"])
    if name == "spare_experts":  # all routed experts except one per layer
        return sum(int(w.count) - int(w.count) // int(w.routed[0]) for w in model.counts.weights if w.routed)
    return values.number(model, name, context)


@dataclass(frozen=True)
class Result:
    """A formula's result for a model, and the true figure."""

    entry: catalogue_entries.Entry
    claimed: Fraction
    true: int | Fraction
    is_as_assumed: bool

    @cached_property
    def ratio(self) -> Fraction:
        return self.claimed / self.true


@memoized
def results(key: str) -> tuple[Result, ...]:
    """A formula's result for each model that it applies to."""
    f, given = formula_of(key), []
    for entry in catalogue_entries.entries():
        model = presets.model(entry.slug)
        if f.needs and f.needs not in model.counts.values():
            continue
        if f.context and (model.longest_context[0] or 0) < f.context:
            continue

        def size(owner: str | None, name: str, model: Model = model) -> int | Fraction:
            return _size(model, name, f.context)

        if true := values.number(model, f.true, f.context):
            is_as_assumed = not any(values.compute(difference, size) for difference in f.assumes)
            given.append(Result(entry, Fraction(values.compute(f.claimed, size)), true, is_as_assumed))
    return tuple(given)


LOW, HIGH = Fraction(19, 20), Fraction(21, 20)  # results within 5%
COUNTED: Mapping[str, Callable[[Result], bool]] = {
    "models": lambda result: True,
    "exact": lambda result: result.ratio == 1,
    "exact as assumed": lambda result: result.ratio == 1 and result.is_as_assumed,
    "within 5%": lambda result: LOW <= result.ratio <= HIGH,
    "too low": lambda result: result.ratio < LOW,
    "too high": lambda result: result.ratio > HIGH,
}
BY_CHANCE = "exact by chance"


def formula_result(key: str, what: str, link: Link | None = None) -> Html | str:
    """One result of a formula over the catalog, for a sentence: `models`, `exact`, `within 5%`, `too low`, `too high`,
    `lowest`, `highest`; among the exact ones the number that are `exact as assumed`, and the names of those that are
    `exact by chance`."""
    given = results(key)
    if one_of(what, [*COUNTED, BY_CHANCE, "lowest", "highest"], "what") in COUNTED:
        return str(_count(key, what))
    if what == BY_CHANCE:
        by_chance = [r for r in given if r.ratio == 1 and not r.is_as_assumed]
        return joined((linked(result.entry.name, result.entry.slug, link) for result in by_chance), ", ") or "none"
    if all(result.ratio == given[0].ratio for result in given):
        return html("all alike ({})", off(given[0].ratio))
    furthest = (min if what == "lowest" else max)(given, key=lambda result: result.ratio)
    return html("{} ({})", linked(furthest.entry.name, furthest.entry.slug, link), off(furthest.ratio))


@memoized
def _count(key: str, what: str) -> int:
    return sum(map(COUNTED[what], results(key)))


def formulas_table(link: Link | None = None) -> Html:
    """Every formula in circulation over the whole catalog: how often it is right, where it is worst, and why."""
    rows = []
    for key, f in formulas().items():
        ends = dict.fromkeys(formula_result(key, what, link) for what in ("lowest", "highest"))
        counts = [formula_result(key, what) for what in ("models", "within 5%", "too low", "too high")]
        rows.append([roomy(html("{}<br>{}", f.title, small(f.of)), f.why), *counts, joined(ends, "<br>")])
    as_table = table(
        f"{len(formulas())} formulas over the catalog",
        [
            "Formula and its omissions",
            number("Models"),
            number(html("Within 5%")),
            number("Too low"),
            number("Too high"),
            "Lowest and highest",
        ],
        rows,
        name="Formulas over the catalog",
    )
    return block(
        as_table,
        conventions(
            html(
                "Each formula is compared with the models that it applies to, and a formula for a context with the "
                "models that allow that context. Too low and too high: by more than 5%."
            ),
            html(
                "Where a config omits a size, calculators take n_kv_heads = n_heads and d_head = D/N. So does "
                "this table."
            ),
        ),
    )


def formula_table(key: str, link: Link | None = None) -> Html:
    """A formula for each model: its result, the true figure, the difference."""
    f, given = formula_of(key), results(key)
    rows = [
        [
            linked(result.entry.name, result.entry.slug, link),
            amount(result.claimed, 9),
            rounding.grouped(result.true),
            off(result.ratio) if result.ratio != 1 else "exact",
            catalogue_entries.DESIGN_KINDS[result.entry.kind].title,
        ]
        for result in sorted(given, key=lambda result: result.ratio)
    ]
    as_table = table(
        html("{}, {}: {} models, from the lowest to the highest", f.title, f.of, len(given)),
        ["Model", number("The formula"), number("The model"), number("Off by"), "Kind"],
        rows,
        name=f"{f.title} for each model",
    )
    if "cache" not in f.true:
        return as_table
    counted = "The model: bytes per token while no window is full, without an indexer’s keys."
    return block(as_table, conventions(counted, caveat(result.entry.slug for result in given)))


def formula_error_chart(key: str = "12LD2", show: str = "both", link: Link | None = None) -> Html:
    """A formula's error for every model of the catalog, as a chart and a table, or just one of them."""
    as_table = None if shown(show) == "chart" else formula_table(key, link)
    if as_table and show == "table":
        return as_table
    given, f = results(key), formula_of(key)
    caption = html(
        "{} for {} models: what the formula gives, divided by what the model has. "
        "{} points lie within 5% of the thick line, {} below, {} above.",
        f.title,
        len(given),
        *(formula_result(key, what) for what in ("within 5%", "too low", "too high")),
    )
    return catalogue_charts.ratio_chart(
        [(result.entry, result.ratio) for result in given],
        caption,
        as_table,
        f"The error of {f.title} for every model",
        link,
    )
