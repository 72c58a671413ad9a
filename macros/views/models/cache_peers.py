"""The KV cache that each token adds, beside that of the models of the same family and of Llama 3 8B."""

from __future__ import annotations

import math as maths
from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.presets import Model
from ..kit import disclosure, rounding
from ..kit.conventions import caveat
from ..kit.html import Html, Link, block, conventions, html, joined, linked, number, table
from ..kit.svg import ACCENT, DATA, Frame, element, figure, framed, label, svg
from .families import relatives
from .model_changes import COMMON

MOST = 6  # models


@disclosure.view("its KV cache")
def cache_peers(model: Model, link: Link | None = None) -> Html:
    """The bytes that each token adds to the KV cache, beside models of the same family and Llama 3 8B, as bars and the
    same as a table; nothing for a model that caches no token."""
    own, slugs = _per_token(model), _peers(model)
    if not own or len(slugs) < 2:
        return Html("")
    rows = [
        [
            linked(one.name, one.slug, link),
            rounding.grouped(one.counts.total),
            rounding.grouped(_per_token(one)),
            rounding.significant(Fraction(_per_token(one), own)),
        ]
        for one in map(presets.model, slugs)
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
def _per_token(model: Model) -> int:
    return model.counts.cache_bytes_per_token()


@memoized
def _peers(model: Model) -> tuple[str, ...]:
    """The model, those of its family that are nearest in size, and Llama 3 8B; from the smallest cache to the
    largest."""
    family = [one.slug for one in relatives(model)]
    near = sorted(family, key=lambda slug: abs(maths.log(presets.model(slug).counts.total / model.counts.total)))
    common = [COMMON] if COMMON in presets.paths() else []
    shown = dict.fromkeys([model.slug, *common, *(slug for slug in near if slug != model.slug)])
    return tuple(sorted([*shown][:MOST], key=lambda slug: _per_token(presets.model(slug))))


@memoized
def _drawn(slug: str, slugs: tuple[str, ...]) -> Html:
    models = [presets.model(one) for one in slugs]
    sizes = list(map(_per_token, models))

    def draw(frame: Frame) -> Html:
        drawn, wide = [], frame.width - 8
        for i, (model, n) in enumerate(zip(models, sizes)):
            y, weight = 4 + 32 * i, "650" if model.slug == slug else None
            drawn += [
                label(4, y + 12, model.name, size=12, weight=weight),
                label(4 + wide, y + 12, rounding.decimal_bytes(n), "end", 12),
                element(
                    "rect",
                    x=4,
                    y=y + 16,
                    width=f"{max(1.0, wide * n / max(sizes)):.1f}",
                    height=9,
                    fill=ACCENT if model.slug == slug else DATA,
                ),
            ]
        title = f"KV cache per token of {presets.model(slug).name} and others"
        said = "; ".join(f"{model.name}: {rounding.decimal_bytes(n)}" for model, n in zip(models, sizes))
        return svg(4 + 32 * len(models), joined(drawn), title, said, frame.width, frame.cls)

    return framed(draw)
