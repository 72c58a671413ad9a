"""Histograms of the sizes that designers choose, over the whole catalog, with one model marked."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf
from typing import NamedTuple

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...counting import design
from ..kit import disclosure, rounding, values
from ..kit.arguments import one_of, whole_number
from ..kit.html import Html, block, html, joined, number, table
from ..kit.model_mark import model_mark
from ..kit.shapes import var
from ..kit.svg import ACCENT, DATA, Kind, area, figure, label, patterns, svg
from .catalogue_entries import entries

ROW, TOP, LEFT, RIGHT = 19, 8, 96, 236  # pixels: a bar and its gap, the top, the start and the end of the longest bar
OTHERS, MARKED = Kind("other models", DATA, "plain"), Kind("the marked model’s", ACCENT, "hatch")


class Bin(NamedTuple):
    """A bar: the sizes from `least` to `most`, inclusive, that are in no narrower bar."""

    said: str
    least: float
    most: float


class Size(NamedTuple):
    """A size that is counted over the catalog: its title, what it belongs to, and its value in a model (None if it has
    none)."""

    title: Html
    whose: str
    of: Callable[[Model], int | Fraction | None]
    bins: tuple[Bin, ...]


def _exactly(*sizes: float) -> list[Bin]:
    return [Bin(f"{size:,}", size, size) for size in sizes]


def _head(model: Model) -> int | None:
    return model.counts.values().get("d_head")


def _shared_heads(model: Model) -> int | None:
    """The key/value heads of a model whose query heads share them."""
    sizes = model.counts.values()
    shared = sizes.get("n_kv_heads")
    return shared if shared is not None and shared < sizes.get("n_heads", 0) else None


def _widening(model: Model) -> Fraction | int | None:
    """d_ff / d_model of a dense model with one kind of feed-forward network."""
    return design.choices(model.counts)[design.FEED_FORWARD]


def _vocabulary(model: Model) -> int | None:
    return model.counts.values().get("vocab_size")


K = 1000
SIZES = {
    "d_head": Size(
        html("Width of a head, {}", var("d_head")),
        "models with attention",
        _head,
        (
            Bin("below 64", 0, 63), *_exactly(64), Bin("65 to 95", 65, 95), *_exactly(96), Bin("97 to 127", 97, 127),
            *_exactly(128), Bin("129 to 255", 129, 255), *_exactly(256), Bin("above 256", 257, inf),
        ),
    ),
    "n_kv_heads": Size(
        html("Key/value heads, {}", var("n_kv_heads")),
        "models whose query heads share keys and values",
        _shared_heads,
        (
            *_exactly(1, 2, 3, 4), Bin("5 to 7", 5, 7), *_exactly(8), Bin("9 to 15", 9, 15), *_exactly(16),
            Bin("above 16", 17, inf),
        ),
    ),
    "d_ff / d_model": Size(
        html("Widening, {} / {}", var("d_ff"), var("d_model")),
        "dense models with a feed-forward network of two or three matrices",
        _widening,
        (
            Bin("below 2.5", 0, 2.5), Bin("2.5 to 2.8", 2.5, 2.8), Bin("2.8 to 3.5", 2.8, 3.5), *_exactly(3.5),
            Bin("3.5 to 4", 3.5, 4), *_exactly(4), Bin("4 to 6", 4, 6), Bin("above 6", 6, inf),
        ),
    ),
    "vocab_size": Size(
        html("Vocabulary, {}", var("vocab_size")),
        "models with tokens",
        _vocabulary,
        (
            Bin("below 32K", 0, 32 * K - 1), Bin("32 to 48K", 32 * K, 48 * K - 1),
            Bin("48 to 64K", 48 * K, 64 * K - 1), Bin("64 to 96K", 64 * K, 96 * K - 1),
            Bin("96 to 120K", 96 * K, 120 * K - 1), Bin("120 to 160K", 120 * K, 160 * K - 1),
            Bin("160 to 240K", 160 * K, 240 * K - 1), Bin("240K and more", 240 * K, inf),
        ),
    ),
}  # fmt: skip


@memoized
def _all(name: str) -> tuple[int | Fraction, ...]:
    """The size in every model of the catalog that has it."""
    sizes = (SIZES[name].of(presets.model(e.slug)) for e in entries())
    return tuple(size for size in sizes if size is not None)


def _bin(name: str, size: int | Fraction) -> Bin:
    """The narrowest bar that contains a size."""
    return min((b for b in SIZES[name].bins if b.least <= size <= b.most), key=lambda b: b.most - b.least)


@disclosure.view("what others chose")
def size_histograms(model: Model) -> Html:
    """How many models of the catalog chose each head width, number of key/value heads, widening and vocabulary size: a
    histogram for each, in which the bar of `model` is marked."""
    panels, tables, lacking = [], [], []
    for i, (name, size) in enumerate(SIZES.items()):
        of = [_bin(name, n) for n in _all(name)]
        own = size.of(model)
        mine = None if own is None else _bin(name, own)
        if own is None:
            lacking.append(size.title)
        panels.append(_panel(size, of, mine, own, model, f"chosen-{i}-{model_mark(model)}-"))
        rows = [[b.said, of.count(b)] for b in size.bins]
        title = html("{}: {} {}", size.title, f"{len(of):,}", size.whose)
        tables.append(table(title, [size.title, number("Models")], rows, name=f"What models chose: {name}"))
    caption = html(
        "Every bar counts models of this catalog. Hatched: the bar of {}, with its size.{}",
        model.name,
        html(" Not among the counted ones: its {}.", joined(lacking, "; its ")) if lacking else "",
    )
    return figure(panels, caption, block(*tables))


def _panel(size: Size, of: list[Bin], mine: Bin | None, own: int | Fraction | None, model: Model, prefix: str) -> Html:
    most = max(of.count(b) for b in size.bins)
    drawn = [patterns([MARKED], prefix)]
    drawn.append(label(0, TOP + 10, size.title.striptags(), size=12, weight="650"))
    for i, b in enumerate(size.bins):
        n, y = of.count(b), TOP + 20 + ROW * i
        is_mine = b is mine
        width = (RIGHT - LEFT) * n / most
        drawn.append(label(LEFT - 6, y + 12, b.said, "end", 12, "650" if is_mine else None))
        if n:
            drawn.append(area(MARKED if is_mine else OTHERS, prefix, LEFT, y, width, ROW - 4, f"{b.said}: {n} models"))
        said = f"{n} ◂ {values.formatted(own)}" if is_mine and own is not None else str(n)
        drawn.append(label(LEFT + width + 5, y + 12, said, "start", 12, "650" if is_mine else None))
    largest = max(size.bins, key=of.count)
    described = f"{len(of):,} {size.whose}. Most of them, {of.count(largest):,}, chose {largest.said}." + (
        f" {model.name} has {values.formatted(own)}." if own is not None else ""
    )
    return svg(TOP + 24 + ROW * len(size.bins), joined(drawn), size.title.striptags(), described)


def size_count(name: str, least: float | None = None, most: float | None = None, multiple: int | None = None) -> str:
    """How many models of the catalog have a size from `least` to `most`, a multiple of `multiple` if given, out of how
    many that have it at all: `8 of 20`. Without `most`, exactly `least`.

    `name` is one of the sizes of `size_histograms`. Raises `Problem`.
    """
    name = one_of(name, list(SIZES), "name")
    high = least if most is None else most
    if multiple is not None:
        multiple = whole_number(multiple, "multiple")
    sizes = _all(name)
    between = [size for size in sizes if (least is None or size >= least) and (high is None or size <= high)]
    n = sum(multiple is None or size % multiple == 0 for size in between)
    return f"{rounding.grouped(n)} of {rounding.grouped(len(sizes))}"
