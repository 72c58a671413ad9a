"""Shares as bars below their labels, filling the available width."""

from __future__ import annotations

from collections.abc import Iterable

from ..kit.html import Html, tag
from ..kit.svg import DATA, element
from .number_tables import percent


def nearly(share: float) -> str:
    """A probability, in words if it is close to 0% or 100%."""
    return "<0.1%" if share < 0.0005 else ">99.9%" if share >= 0.9995 else percent(share)


def share_bars(shares: Iterable[tuple[object, float]]) -> Html:
    """A bar for each label."""
    return tag("ul", *(_bar(name, share) for name, share in shares))


def _bar(name: object, share: float) -> Html:
    width = f"{100 * share:.2f}%"
    drawn = element("rect", x=0, y=1, width=width, height="86%", fill=DATA, fill_opacity=".3", stroke=DATA)
    bar = element("svg", drawn, width="100%", height=16, aria_hidden="true")
    return tag("li", tag("span", name), " ", tag("b", nearly(share)), bar)
