"""The KV cache that each token adds, next to that of the models of the same family and of Llama 3 8B."""

from __future__ import annotations

import math as maths
from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ..kit import disclosure, rounding
from ..kit.conventions import caveat
from ..kit.html import Html, Link, block, conventions, html, joined, linked, number, table
from ..kit.svg import ACCENT, DATA, Frame, element, figure, framed, label, svg
from .families import figures, relatives
from .model_changes import COMMON

MOST = 6  # models


@disclosure.view("its KV cache", with_others=True)
def cache_peers(model: Model, link: Link | None = None) -> Html:
    """The bytes that each token adds to the KV cache, next to models of the same family and Llama 3 8B, as bars and the
    same as a table; nothing for a model that caches no token."""
    own, slugs = figures(model.slug).cache_bytes_per_token, _peers(model)
    if not own or len(slugs) < 2:
        return Html("")
    rows = [
        [
            linked(presets.preset(slug).name, slug, link),
            rounding.grouped(figures(slug).total),
            rounding.grouped(figures(slug).cache_bytes_per_token),
            rounding.significant(Fraction(figures(slug).cache_bytes_per_token, own)),
        ]
        for slug in slugs
    ]
    as_table = table(
        f"KV cache per token beside {model.name}",
        ["Model", number("Parameters"), number("KV cache, bytes per token"), number(f"{model.name} = 1")],
        rows,
        name=f"KV cache per token beside {model.name}",
    )
    caption = html(
        "Bytes that one more token adds to the KV cache, at 2 bytes per element: {}, and the models of its family that "
        "are nearest in size.",
        model.name,
    )
    return figure([_drawn(model.slug, slugs)], caption, block(as_table, conventions(caveat(slugs))), is_wide=True)


@memoized
def _peers(model: Model) -> tuple[str, ...]:
    """The model, those of its family that are closest in size, and Llama 3 8B; smallest cache first."""
    total = figures(model.slug).total
    near = sorted(relatives(model.slug), key=lambda slug: abs(maths.log(figures(slug).total / total)))
    common = [COMMON] if COMMON in presets.paths() else []
    shown = dict.fromkeys([model.slug, *common, *(slug for slug in near if slug != model.slug)])
    return tuple(sorted([*shown][:MOST], key=lambda slug: figures(slug).cache_bytes_per_token))


@memoized
def _drawn(slug: str, slugs: tuple[str, ...]) -> Html:
    names = [presets.preset(one).name for one in slugs]
    sizes = [figures(one).cache_bytes_per_token for one in slugs]

    def draw(frame: Frame) -> Html:
        drawn, wide = [], frame.width - 8
        for i, (one, name, n) in enumerate(zip(slugs, names, sizes)):
            y, weight = 4 + 32 * i, "650" if one == slug else None
            drawn += [
                label(4, y + 12, name, size=12, weight=weight),
                label(4 + wide, y + 12, rounding.decimal_bytes(n), "end", 12),
                element(
                    "rect",
                    x=4,
                    y=y + 16,
                    width=f"{max(1.0, wide * n / max(sizes)):.1f}",
                    height=9,
                    fill=ACCENT if one == slug else DATA,
                ),
            ]
        title = f"KV cache per token of {presets.preset(slug).name} and others"
        said = "; ".join(f"{name}: {rounding.decimal_bytes(n)}" for name, n in zip(names, sizes))
        return svg(4 + 32 * len(slugs), joined(drawn), title, said, frame.width, frame.cls)

    return framed(draw)
