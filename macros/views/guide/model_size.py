"""Figures of the pages on model size, other than tables of single models: a config as a file, common widths, pairs of
models."""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...counting import design
from ...engine.architectures.config import fields_of
from ...engine.errors import Problem, nearest
from ..charts import catalogue_entries, parts_chart
from ..kit import disclosure, rounding, values
from ..kit.arguments import one_of
from ..kit.excerpts import LINE_END, coloured, listing
from ..kit.html import Html, Link, Row, block, conventions, html, joined, linked, number, table, tag, text
from ..kit.shapes import var
from ..words import notation


def model_link(slug: str, words: str | None = None, link: Link | None = None) -> Html:
    """A link to a model's page, with the model's name or words of your own."""
    name = presets.preset(slug).name  # says so if there is none
    return linked(name if words is None else words, slug, link)


@disclosure.view("a config.json")
def config_file(model: Model, highlight: Iterable[str] = ()) -> Html:
    """The published config.json, key by key from the preset; the lines of `highlight` are marked, sizes have this
    site's names."""
    raw = model.raw
    names = {k.key: k.field for k in fields_of(model.architecture.config) if k.key and k.is_size}
    wanted = (highlight,) if isinstance(highlight, str) else tuple(highlight)
    for key in wanted:
        if key not in raw:
            raise Problem(
                f"{model.slug} has no key {key!r} in its config", nearest(str(key), raw, "see the preset's [config]")
            )
    named = {k: v for k, v in raw.items() if (name := names.get(k)) and notation.known(name)}
    widest = max((len(json.dumps({k: v})) for k, v in named.items()), default=0) + 3
    lines = []
    for i, (key, value) in enumerate(raw.items()):
        source = f"  {json.dumps(key)}: {json.dumps(value)}{',' if i < len(raw) - 1 else ''}"
        line = text(source)
        if key in named:
            line += " " * (widest - len(source)) + tag("span", html("# {}", names[key]), cls="c1")
        line += LINE_END
        lines.append(tag("span", line, cls="hll") if key in wanted else line)
    spaced = joined(lines).replace("  ", html("&#32;&#32;"))
    return listing(html("{}: config.json", model.name), joined(["{", LINE_END, spaced, "}"]))


PHONE = textwrap.TextWrapper(43, initial_indent="  # ", subsequent_indent="  # ", break_on_hyphens=False)
CHOSEN = ("d_model", "n_layers", "n_heads", "d_ff", "vocab_size")


@disclosure.view("its choices")
def python_config(model: Model) -> Html:
    """The sizes that a model's makers chose, as a Python dictionary with a comment on each; the width is marked."""
    sizes = model.counts.values()
    shown = []
    for name in CHOSEN:
        if name not in sizes:
            continue
        meaning, *_ = re.split(" that | \\(", notation.symbol(name).meaning)
        comment = PHONE.wrap(meaning)
        code = f'  "{name}": {sizes[name]},'
        line = joined(joined(coloured(one)) + LINE_END for one in (*comment, code))
        shown.append(tag("span", line, cls="hll") if name == "d_model" else line)
    return listing(
        html("{}: its sizes in Python", model.name),
        joined(["config = {", LINE_END, *shown, "}"]),
        "chosen before training",
    )


GLANCE = (("Small", 0, 3 * 10**9), ("Medium", 3 * 10**9, 3 * 10**10), ("Large", 3 * 10**10, 10**13))


@memoized
def widths_at_a_glance() -> Html:
    """The most common widths of small, medium and large models of the catalog."""
    rows = []
    for title, least, most in GLANCE:
        widths = Counter(e.d_model for e in catalogue_entries.entries() if least <= e.total < most)
        commonest = sorted(width for width, _ in widths.most_common(3))
        of = f"below {rounding.short(most, 1)}" if not least else f"from {rounding.short(least, 1)}"
        rows.append([title, of, joined((f"{width:,}" for width in commonest), ", ")])
    return table(
        "Common widths at a glance",
        ["Models", "Parameters", html("{}, the three commonest", var("d_model"))],
        rows,
        name="Widths at a glance",
    )


CLASSES = ((0, 10**9), (10**9, 10**10), (10**10, 10**11), (10**11, 10**13))


def common_widths() -> Html:
    """The hidden dimensions in use, by the size of the models, with the number of models for each."""
    rows = []
    for least, most in CLASSES:
        models = [e for e in catalogue_entries.entries() if least <= e.total < most]
        if not models:
            continue
        widths = Counter(e.d_model for e in models)
        commonest = {width for width, n in widths.most_common(3) if n > 1}
        listed = joined(
            (
                (tag("strong", f"{width:,}") if width in commonest else text(f"{width:,}"))
                + (html(" ({})", n) if n > 1 else "")
                for width, n in sorted(widths.items())
            ),
            ", ",
        )
        depths = sorted(e.n_layers for e in models)
        rows.append([_class(least, most), len(models), listed, f"{depths[0]} to {depths[-1]}"])
    as_table = table(
        "Widths of the models of the catalog",
        ["Parameters", number("Models"), html("{} (how many models)", var("d_model")), number("Layers")],
        rows,
        name="Common choices of d_model",
    )
    return block(as_table, conventions("The most common widths of a row are bold."))


def _class(least: int, most: int) -> str:
    if not least:
        return f"below {rounding.short(most, 1)}"
    if most == CLASSES[-1][1]:
        return f"from {rounding.short(least, 1)}"
    return f"{rounding.short(least, 1)} to {rounding.short(most, 1)}"


def width_result(what: str, link: Link | None = None) -> Html | str:
    """A fact about the widths in the catalog, for a sentence: `models`, `least`, `most`, `multiples of 128`, `least
    d_ff`, `most d_ff`.

    The last two are the least and the greatest d_ff / d_model of dense models with a gated feed-forward network,
    starting with the first released if several share it.
    """
    widths = [e.d_model for e in catalogue_entries.entries()]
    facts = {
        "models": len(widths),
        "least": min(widths),
        "most": max(widths),
        "multiples of 128": sum(width % 128 == 0 for width in widths),
    }
    if one_of(what, [*facts, "least d_ff", "most d_ff"], "what") in facts:
        return f"{facts[what]:,}"
    ratio, slug = (min if what == "least d_ff" else max)(_gated(), key=lambda pair: pair[0])
    return html("{}·D ({})", values.formatted(ratio), model_link(slug, link=link))


def _gated() -> list[tuple[Fraction, str]]:
    """d_ff / d_model of every dense model whose feed-forward network has three matrices, in the order of release."""
    return [
        (Fraction(values.number(m, "d_ff"), values.number(m, "d_model")), m.slug)
        for m in disclosure.models(e.slug for e in catalogue_entries.entries())
        if not design.is_sparse(m.counts) and design.feed_forward_matrices(m.counts) == 3
    ]


def scaling_table(pairs: Iterable[tuple[str, str]], link: Link | None = None) -> Html:
    """Pairs of models: the ratios of width and depth, the growth of a layer and of the whole model by the rule, and the
    actual growth."""
    rows = []
    for pair in pairs:
        if isinstance(pair, str) or len(tuple(pair)) != 2:
            raise Problem(f"pairs holds {pair!r}: expected two models", 'write pairs=[["…", "…"], …]')
        a, b = map(disclosure.model, pair)
        if a is None or b is None:
            raise Problem(f"{pair!r}: a model without sizes", "choose two that are disclosed")
        width, in_layers, total = (
            Fraction(values.number(b, name), values.number(a, name)) for name in ("d_model", "in_layers", "total")
        )
        depth = Fraction(design.n_layers(b.counts), design.n_layers(a.counts))
        factors = [width, depth, width**2, in_layers / depth, depth * width**2, in_layers, total]
        names = joined((model_link(slug, link=link) for slug in pair), " → ")
        rows.append([names, *("×" + rounding.significant(factor) for factor in factors)])
    columns = [
        "From → to",
        number(var("d_model")),
        number(var("n_layers")),
        number(html("Rule: D²")),
        number("One layer, measured"),
        number(html("Rule: L·D²")),
        number("All layers, measured"),
        number("All parameters"),
    ]
    return table("The rule, compared with real pairs of models", columns, rows, name="Linear in L, quadratic in D")


@disclosure.view("a comparison with the formula")
def formula_against_parts(model: Model) -> Html:
    """4·D², 8·D² and the rest, part by part: the formula's count, the model's count."""
    square = design.n_layers(model.counts) * model.counts.values()["d_model"] ** 2
    formulas = (("–", 0), ("4 · L · D²", 4 * square), ("8 · L · D²", 8 * square), ("–", 0), ("–", 0))
    parts = [
        (part.title, formula, given, count)
        for part, (formula, given), count in zip(parts_chart.PARTS.values(), formulas, parts_chart.part_counts(model))
    ]
    whole = ("All", "12 · L · D²", sum(given for *_, given, _ in parts), sum(count for *_, count in parts))

    def cells(title: str, formula: str, given: int, count: int) -> list[str]:
        more = count - given
        difference = ("+" if more > 0 else "") + rounding.grouped(more)
        return [title, formula, rounding.grouped(given), rounding.grouped(count), html(difference)]

    return table(
        html("12 · L · D² and {}, part by part", model.name),
        ["Part", "Formula", number("gives"), number("The model has"), number("More than the formula")],
        [*(cells(*part) for part in parts), Row(cells(*whole), "total")],
        name="The formula part by part",
    )
