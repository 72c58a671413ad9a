"""What the pages on model size show besides tables of single models: a config as a file, the widths in use, pairs of models."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction

from ..catalogue import presets
from ..dependencies import remembered
from ..engine.architectures.config import fields_of
from ..engine.errors import Problem, nearest
from . import charts, notation, numbers, values
from .markup import block, conventions, row, table, tag, text, var
from .tables import undisclosed

Link = Callable[[str], str | None]


def model_link(slug: str, words: str | None = None, link: Link | None = None) -> str:
    """The way to a model's page, by the model's name or in words of one's own."""
    url, said = (link(slug) if link else None), text(words if words is not None else presets.preset(slug).name)
    return tag("a", said, href=url) if url else said


def config_file(slug: str, highlight: Iterable[str] = ()) -> str:
    """The published config.json, key by key as the preset holds it; the lines of `highlight` marked, sizes with the site's name."""
    model = values.disclosed(slug)
    if model is None:
        return undisclosed(slug, "a config.json")
    raw = model.preset.config
    names = {k.key: k.field for k in fields_of(model.architecture.config) if k.key and k.is_size}
    wanted = (highlight,) if isinstance(highlight, str) else tuple(highlight)
    for key in wanted:
        if key not in raw:
            raise Problem(
                f"{slug} has no key {key!r} in its config", nearest(str(key), raw, "see the preset's [config]")
            )
    wide = max(len(json.dumps({k: v})) for k, v in raw.items() if not isinstance(v, dict | list)) + 1
    lines = ["{"]
    for i, (key, v) in enumerate(raw.items()):
        said = f"  {json.dumps(key)}: {json.dumps(v)}{',' if i < len(raw) - 1 else ''}"
        note = names.get(key)
        line = text(said)
        if note and notation.known(note):
            line += " " * max(1, wide - len(said)) + f'<span class="c1"># {text(note)}</span>'
        lines.append(f'<span class="hll">{line}&#10;</span>' if key in wanted else line + "&#10;")
    lines[0] = "{&#10;".replace("{", "&#123;")
    body = "".join(lines).replace("  ", "&#32;&#32;") + "&#125;"
    return f'<div class="highlight"><pre tabindex="0" aria-label="{text(model.name)}: config.json"><code>{body}</code></pre></div>'


CLASSES = ((0, 10**9), (10**9, 10**10), (10**10, 10**11), (10**11, 10**13))


@remembered
def common_widths() -> str:
    """The hidden dimensions in use, by the size of the models, with how many models have each."""
    rows = []
    for least, most in CLASSES:
        found = [e for e in charts.entries() if least <= e.total < most]
        if not found:
            continue
        widths = Counter(e.d_model for e in found)
        top = {d for d, n in widths.most_common(3) if n > 1}
        listed = ", ".join(
            (f"<strong>{d:,}</strong>" if d in top else f"{d:,}") + (f" ({n})" if n > 1 else "")
            for d, n in sorted(widths.items())
        )
        depth = sorted(e.n_layers for e in found)
        title = (
            f"{numbers.short(least, 1)} to {numbers.short(most, 1)}"
            if least and most < 10**13
            else f"below {numbers.short(most, 1)}"
            if not least
            else f"from {numbers.short(least, 1)}"
        )
        rows.append(
            row([(title, False), (str(len(found)), True), (listed, False), (f"{depth[0]} to {depth[-1]}", True)])
        )
    made = table(
        "Widths of the models of the catalogue",
        [("Parameters", False), ("Models", True), (f"{var('d_model')} (how many models)", False), ("Layers", True)],
        [f"<tbody>{''.join(rows)}</tbody>"],
        "Common choices of d_model",
    )
    return block(made, conventions("The most common widths of a row are bold."))


def width_result(what: str, link: Link | None = None) -> str:
    """One fact about the widths of the catalogue, in a sentence: `models`, `least`, `most`, `multiples of 128`, `least d_ff`, `most d_ff`.

    The last two are d_ff / d_model of the dense model with a gated feed-forward part where it is least or most, the first released of several.
    """
    widths = [e.d_model for e in charts.entries()]
    found = {
        "models": len(widths),
        "least": min(widths),
        "most": max(widths),
        "multiples of 128": sum(d % 128 == 0 for d in widths),
    }
    if what in ("least d_ff", "most d_ff"):
        ratio, slug = (min if what == "least d_ff" else max)(_gated(), key=lambda r: r[0])
        return f"{values.shown(ratio)}·D ({model_link(slug, link=link)})"
    if what not in found:
        known = [*found, "least d_ff", "most d_ff"]
        raise Problem(f"what = {what!r}", nearest(str(what), known, f"known ones: {', '.join(known)}"))
    return f"{found[what]:,}"


def _gated() -> list[tuple[Fraction, str]]:
    """d_ff / d_model of every dense model whose feed-forward part has three matrices, in the order of release."""
    models = {e.slug: values.disclosed(e.slug) for e in charts.entries()}
    return [
        (Fraction(values.number(m, "d_ff"), values.number(m, "d_model")), slug)
        for slug, m in models.items()
        if m.counts.active == m.counts.total and charts.matrices(m) == 3
    ]


def scaling_table(pairs: Iterable[tuple[str, str]], link: Link | None = None) -> str:
    """Pairs of models: how many times as wide and as deep, what the rule gives for a layer and the whole, what they have."""
    rows = []
    for pair in pairs:
        if isinstance(pair, str) or len(tuple(pair)) != 2:
            raise Problem(f"pairs holds {pair!r}: expected two models", 'write pairs=[["…", "…"], …]')
        a, b = (values.disclosed(s) for s in pair)
        if a is None or b is None:
            raise Problem(f"{pair!r}: a model without sizes", "choose two that are disclosed")

        def times(name, layers=False):
            return Fraction(values.number(b, name), values.number(a, name)) / (
                Fraction(charts.layers(b), charts.layers(a)) if layers else 1
            )

        d, depth = times("d_model"), Fraction(charts.layers(b), charts.layers(a))
        cells = [d, depth, d**2, times("in_layers", True), depth * d**2, times("in_layers"), times("total")]
        names = " → ".join(model_link(s, link=link) for s in pair)
        rows.append(row([(names, False), *(("×" + numbers.significant(c), True) for c in cells)]))
    head = [
        ("From → to", False),
        (var("d_model"), True),
        (var("n_layers"), True),
        ("Rule: D²", True),
        ("One layer, measured", True),
        ("Rule: L·D²", True),
        ("All layers, measured", True),
        ("All parameters", True),
    ]
    return table(
        "The rule beside real pairs of models", head, [f"<tbody>{''.join(rows)}</tbody>"], "Linear in L, quadratic in D"
    )


@remembered
def formula_against_parts(slug: str) -> str:
    """4·D², 8·D² and what else there is, part by part: what the formula has for it, what the model has."""
    model = values.disclosed(slug)
    if model is None:
        return undisclosed(slug, "a comparison with the formula")
    at, parts = model.counts.values(), charts.shares(slug)
    square = charts.layers(model) * at["d_model"] ** 2
    said = (0, 4 * square, 8 * square, 0, 0)
    formulas = ("–", "4 · L · D²", "8 · L · D²", "–", "–")
    rows = [
        row(
            [
                (k.title, False),
                (f, False),
                (numbers.grouped(s), True),
                (numbers.grouped(n), True),
                (_signed(n - s), True),
            ]
        )
        for k, f, s, n in zip(charts.PARTS, formulas, said, parts)
    ]
    rows.append(
        row(
            [
                ("All", False),
                ("12 · L · D²", False),
                (numbers.grouped(sum(said)), True),
                (numbers.grouped(sum(parts)), True),
                (_signed(sum(parts) - sum(said)), True),
            ],
            "total",
        )
    )
    return table(
        f"12 · L · D² and {text(model.name)}, part by part",
        [
            ("Part", False),
            ("Formula", False),
            ("gives", True),
            ("The model has", True),
            ("More than the formula", True),
        ],
        [f"<tbody>{''.join(rows)}</tbody>"],
        "The formula part by part",
    )


def _signed(n: int) -> str:
    return ("+" if n > 0 else "") + numbers.grouped(n)


def macros(link: Link) -> dict[str, Callable]:
    """The macros of the pages on model size and of the checked claims; `link` leads from the page being built to a model's."""
    from . import claims

    def linked(function):
        signature = inspect.signature(function)

        def macro(*args, **kwargs):
            return function(*args, **kwargs, link=link)

        macro.__signature__ = signature.replace(parameters=[p for n, p in signature.parameters.items() if n != "link"])
        macro.__doc__, macro.__name__ = function.__doc__, function.__name__
        return macro

    return {
        "calc": values.calc,
        "model_link": linked(model_link),
        "config_file": config_file,
        "parts_chart": linked(charts.parts_chart),
        "size_chart": charts.size_chart,
        "shape_history_chart": charts.shape_history_chart,
        "growth_figure": charts.growth_figure,
        "formula_error_chart": linked(claims.formula_error_chart),
        "formula_result": linked(claims.formula_result),
        "formulas_table": linked(claims.formulas_table),
        "formula_against_parts": formula_against_parts,
        "common_widths": common_widths,
        "width_result": linked(width_result),
        "scaling_table": linked(scaling_table),
        "claims_table": linked(claims.claims_table),
        "token_ids_claim": claims.token_ids_claim,
    }
