"""What each token may attend to: the masks of the forward passes over a short text, and the kinds of attention in the
catalog."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...cache.memory import memoized
from ...catalogue import presets
from ...engine.errors import Problem, nearest
from ...engine.ops import Canvas, Chunked, Full, SlidingWindow
from ..kit import disclosure
from ..kit.html import Html, Link, joined, linked, number, table, tag
from ..kit.svg import ACCENT, DATA, element, svg
from ..models.model_page import experts_and_attention, presets_in_order
from .stepped import State, stepped

TOKENS, SIZE = 16, 160
SIZES = (1, 2, 3, 4, 6, 8, 12, 16)
SHOWN = (4,)
MASKS = (
    ("Causal: all words before", lambda size: Full()),
    ("Sliding window", SlidingWindow),
    ("Chunks", Chunked),
    ("Encoder: all words", lambda size: Canvas()),
)
# Kinds of attention in the words of the models' pages, with what each leaves out.
KINDS = {
    "multi-head": "nothing: each head has keys and values of its own",
    "grouped-query": "some keys and values: several query heads share them",
    "multi-query": "the keys and values of all heads but one, which every query head uses",
    "latent": "the keys and values themselves: a narrow vector is cached, from which they follow",
    "sliding window": "distant tokens, in some layers or all",
    "chunked": "tokens of earlier chunks, in some layers",
    "sparse": "tokens that an indexer rates low",
    "shared caches": "the caches of some layers, which read those of others",
    "recurrent": "the tokens: some or all layers keep a state of fixed size",
    "bidirectional": "the mask: an encoder’s tokens see later ones, too",
    "cross": "nothing: the decoder also looks at what an encoder read",
}
EXAMPLES = 3


def allowed(mask: object, tokens: int = TOKENS) -> np.ndarray:
    """Whether a token (row) may attend to another (column), by the mask of the forward pass: [T S]."""
    places = np.arange(tokens)
    return np.asarray(mask.allows(places[:, None], places[None, :]))  # type: ignore[attr-defined]


def attention_masks() -> Html:
    """What each of sixteen tokens may attend to, for four masks; with a script, at the window and chunk size that the
    reader chooses."""
    return _masks()


@memoized
def _masks() -> Html:
    states = []
    for size in SIZES:
        panels = []
        said = []
        for title, made in MASKS:
            mask = made(size)
            seen = allowed(mask)
            n = int(seen.sum())
            assert n == mask.pairs(TOKENS), title
            panels.append(tag("div", tag("p", f"{title}: {n} scores"), _drawing(seen, title)))
            said.append(f"{title.split(':')[0].lower()} {n}")
        states.append(
            State(
                f"Window and chunk of {size}",
                tag("div", *panels, cls="ep-four"),
                f"Scores for {TOKENS} tokens, with a window and chunks of {size}: {', '.join(said)}.",
            )
        )
    caption = (
        "Each row is a token, each column a token that it may look at. Filled: a score is computed. Crossed out: "
        "masked. Orange: the newest token. Drawn by the masks that the forward passes of this site use."
    )
    return stepped("size", "Window and chunk", states, [SIZES.index(size) for size in SHOWN], caption)


def _drawing(seen: np.ndarray, title: str) -> Html:
    side = SIZE / len(seen)

    def path(cells: Sequence[tuple[int, int]]) -> str:
        return "".join(f"M{j * side:.0f} {i * side:.0f}h{side:.0f}v{side:.0f}h{-side:.0f}z" for i, j in cells)

    last = len(seen) - 1
    there = [(int(i), int(j)) for i, j in zip(*np.nonzero(seen))]
    hidden = [(int(i), int(j)) for i, j in zip(*np.nonzero(~seen))]
    arm = side - 6  # of a cross, three pixels inside its cell
    crosses = "".join(
        f"M{j * side + 3:.0f} {i * side + 3:.0f}l{arm:.0f} {arm:.0f}m0 {-arm:.0f}l{-arm:.0f} {arm:.0f}"
        for i, j in hidden
    )
    drawn = [
        element("path", d=crosses, stroke="var(--ep-rule, #8884)", fill="none"),
        element("path", d=path([c for c in there if c[0] != last]), fill=DATA, fill_opacity=".45", stroke=DATA),
        element("path", d=path([c for c in there if c[0] == last]), fill=ACCENT, fill_opacity=".75", stroke=ACCENT),
    ]
    described = f"{len(there)} of {seen.size} pairs of tokens have a score."
    return svg(SIZE + 1, tag("g", *drawn), title, described, SIZE + 1)


@memoized
def kinds_of_catalog() -> dict[str, list[str]]:
    """The models with each kind of attention, newest first."""
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for slug, _ in sorted(presets_in_order(), key=lambda row: str(row[1].released), reverse=True):
        model = disclosure.model(slug)
        for kind in filter(None, experts_and_attention(model)[1].split(", ")) if model else ():
            if kind in found:
                found[kind].append(slug)
    return found


def attention_kinds(link: Link | None = None) -> Html:
    """The kinds of attention in the catalog: what each leaves out, how many models have it, and some of them."""
    found = kinds_of_catalog()
    rows = [
        [
            f"{kind[0].upper()}{kind[1:]}",
            KINDS[kind],
            f"{len(slugs)}",
            joined((linked(presets.preset(slug).name, slug, link) for slug in slugs[:EXAMPLES]), ", "),
        ]
        for kind, slugs in found.items()
    ]
    name = "Kinds of attention in the catalog"
    return table(name, ["Kind", "Leaves out", number("Models"), "The newest with it"], rows, name=name)


def attention_count(kind: str) -> str:
    """How many models of the catalog have a kind of attention, such as `grouped-query`."""
    found = kinds_of_catalog()
    if kind not in found:
        raise Problem("", nearest(kind, found, f"one of {', '.join(found)}")).about("kind", kind)
    return f"{len(found[kind])}"
