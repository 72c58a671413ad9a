"""The experts of a layer as tiles: which ones a few tokens have used, in an example choice."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from math import ceil, sqrt

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...engine.errors import Problem
from ..kit import disclosure
from ..kit.html import Html, html, tag
from ..kit.svg import ACCENT, WEIGHT, element, svg
from .stepped import State, stepped

TOKENS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SHOWN = (1, 8, 32)
SIZE, GAP, SEED = 240, 2, 1


@disclosure.view("its experts")
def expert_tiles(model: Model) -> Html:
    """The experts of one layer as tiles: those of the newest token, and those used before; with a script, after as many
    tokens as the reader chooses."""
    sizes = model.counts.values()
    if "n_experts" not in sizes:
        raise Problem("", "choose a mixture of experts").about("model", model.slug)
    shared = int(sizes.get("n_shared_experts", 0))
    return _tiles(model.name, int(sizes["n_experts"]), int(sizes["n_experts_per_token"]), shared)


def choices(n: int, k: int, tokens: int) -> list[list[int]]:
    """An example choice: k of n experts for each token, all equally likely."""
    made = random.Random(SEED)  # not by a router: there are no weights here
    return [made.sample(range(n), k) for _ in range(tokens)]


def expected(n: int, k: int, tokens: int) -> float:
    """The expected number of experts that are used at least once if each token chooses k of n evenly."""
    return n * (1 - (1 - k / n) ** tokens)


@memoized
def _tiles(name: str, n: int, k: int, shared: int) -> Html:
    chosen = choices(n, k, TOKENS[-1])
    states = []
    for tokens in TOKENS:
        used = {expert for token in chosen[:tokens] for expert in token}
        states.append(
            State(
                f"{tokens} token{'s' if tokens > 1 else ''}: {len(used)} experts",
                _drawing(n, shared, used, chosen[tokens - 1]),
                f"{len(used)} of {n} experts are used by {tokens} token{'s' if tokens > 1 else ''}. If each token "
                f"chooses evenly, {expected(n, k, tokens):.1f} are expected.",
            )
        )
    always = " The wide tile below is the shared expert, which computes for every token." if shared else ""
    caption = html(
        "The {} experts of one layer of {}. Orange: the {} of the newest token. Gray: used by the tokens before. An "
        "example choice: the weights of the router are not here.{}",
        n,
        name,
        k,
        always,
    )
    return stepped("tokens", "Tokens", states, [TOKENS.index(t) for t in SHOWN], caption)


def _drawing(n: int, shared: int, used: Collection[int], newest: Collection[int]) -> Html:
    columns = ceil(sqrt(n))
    side = (SIZE - GAP * (columns - 1)) / columns
    rows = ceil(n / columns)
    before = [i for i in used if i not in newest]

    def path(experts: Iterable[int]) -> str:
        corners = ((i % columns * (side + GAP), i // columns * (side + GAP)) for i in sorted(experts))
        return "".join(f"M{x:.1f} {y:.1f}h{side:.1f}v{side:.1f}h{-side:.1f}z" for x, y in corners)

    high = rows * (side + GAP)
    drawn = [
        element("path", d=path(set(range(n)) - set(used)), fill="none", stroke=WEIGHT, stroke_opacity=".6"),
        element("path", d=path(before), fill=WEIGHT, fill_opacity=".55", stroke=WEIGHT),
        element("path", d=path(newest), fill=ACCENT, stroke=ACCENT),
    ]
    if shared:
        drawn.append(element("rect", x=0, y=high + 2, width=SIZE, height=12, fill=ACCENT, stroke=ACCENT))
    described = f"{n} tiles; {len(used)} are filled, and {len(newest)} of these in orange."
    return svg(high + (16 if shared else 2), tag("g", *drawn), "Experts of one layer", described, SIZE)
