"""What a family changed from one generation to the next: each model beside the earlier one of its line, and a chart of
sizes."""

from __future__ import annotations

import math as maths
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..catalogue import presets
from ..catalogue.presets import Model
from ..counting.parts import INPUT_TABLES, Category
from ..dependencies import remembered
from ..engine.ops import SlidingWindow
from ..engine.steps import EVERY_NORM, ROPES, Role
from . import disclosed, rounding, values, words
from .arguments import unknown
from .catalogue import iso
from .charts import year
from .html import Cell, Column, Html, Link, anchor, block, conventions, html, joined, linked, number, table, tag
from .layers import kinds, n_layers
from .models import all_rows, growth, has_fixed_state, kind_of
from .operations import Place, is_alibi, place_of_norm
from .parts import is_sparse
from .shapes import var
from .svg import (
    DATA,
    GREEN,
    HEIGHT,
    PLOT,
    VIOLET,
    WIDTH,
    Box,
    Kind,
    Scale,
    apart,
    axes,
    box_of,
    element,
    figure,
    label,
    legend,
    mark,
    powers,
    svg,
)
from .tables import caveat, limit

# Years that count as much as a factor of two in size where the earlier model of a line is looked for.
HALF_A_YEAR = 0.5

ACTIVATION_TITLES = {
    Role.GELU: "GELU",
    Role.GELU_TANH: "GELU",
    Role.SILU: "SiLU",
    Role.RELU: "ReLU",
    Role.RELU_SQUARED: "squared ReLU",
    Role.XIELU: "xIELU",
}
NORM_TITLES: dict[Role | None, str] = {
    Role.LAYER_NORM: "LayerNorm",
    Role.RMS_NORM: "RMSNorm",
    Role.GATED_RMS_NORM: "RMSNorm",
}


def members(family: str) -> list[str]:
    """The models of a family in the order of release, of one day the smallest first. Raises `Problem`."""
    slugs = [slug for slug, p in all_rows() if p.family == family]
    if not slugs:
        raise unknown(f"family = {family!r}: no model has it", family, sorted({p.family for _, p in all_rows()}))
    return slugs


# What the models of a family are compared by


def _experts(m: Model) -> str:
    sizes = m.counts.values()
    if not is_sparse(m):
        return ""
    shared = sizes.get("n_shared_experts", 1 if any("shared_expert" in w.name for w in m.counts.weights) else 0)
    return f"{sizes['n_experts_per_token']} of {sizes['n_experts']}" + (f" and {shared} shared" if shared else "")


def _biases(m: Model) -> str:
    """Which parts of the layers have a bias: matrices, convolutions, step sizes, norms, the choice of experts."""
    having: dict[str, None] = {}
    for part in m.counts.parts:
        if part.layer is None or part.category is Category.NORMS:
            continue
        plain = [w for w in part.weights if w not in part.norms and not w.name.endswith(INNER_BIASES)]
        biases = [w for w in plain if w.name.endswith("bias")]
        if not biases:
            continue
        matrices = [w for w in plain if len(w.shape) > 1 and not w.name.endswith(("bias", "A_log"))]
        title = "attention" if part.is_attention else "mixer"
        if part.category is Category.FEED_FORWARD:
            title = "feed-forward"
        gives = [g for w in biases if (g := words.of_tensor(w.name).gives)]
        if len(biases) < len(matrices):
            title = ", ".join(gives) if title == "attention" and gives else f"part of {title}"
        having[title] = None
    for title, has_it in _inner_biases(m).items():
        if has_it:
            having[title] = None
    titles = list(having)
    return " and ".join(filter(None, (", ".join(titles[:-1]), titles[-1]))) if titles else "none"


CONVOLUTION, STEP_SIZE, CHOICE = ("conv1d.bias",), ("dt_bias", "dt_proj.bias"), ("correction_bias",)
INNER_BIASES = CONVOLUTION + STEP_SIZE + CHOICE


def _inner_biases(m: Model) -> dict[str, bool]:
    """Which of a layer's parts besides its matrices have a bias."""
    names = [w.name for w in m.counts.weights + m.counts.buffers if w.layers is not None]
    norms = [
        node
        for layer in kinds(m)
        for node in layer.walk()
        if node.role in EVERY_NORM and any(w.name.endswith("bias") for w in node.all_weights())
    ]
    return {
        "convolution": any(name.endswith(CONVOLUTION) for name in names),
        "step size": any(name.endswith(STEP_SIZE) for name in names),
        "norms": not all(node.is_inside(Role.INDEXER) for node in norms),
        "the indexer’s norm": any(node.is_inside(Role.INDEXER) for node in norms),
        "choice of experts": any(name.endswith(CHOICE) for name in names),
    }


def _norms(m: Model) -> str:
    """The kind of norm, and what it stands before or after in a layer."""
    norms: dict[str, None] = {}
    places: set[Place] = set()
    of_heads = False
    for layer in kinds(m):
        for node in layer.walk():
            if (node.role is Role.UNIT_NORM and node.is_inside(Role.ATTENTION)) or any(
                words.of_tensor(w.name).gives in ("q", "k") for w in node.weights if node.role in NORM_TITLES
            ):
                of_heads = True
            elif node.parent is layer and node.role in NORM_TITLES:
                norms[NORM_TITLES[node.role]] = None
                place, _ = place_of_norm(node)
                places.add(place if place in (Place.AFTER, Place.STREAM) else Place.BEFORE)
    where = " and ".join(word for place, word in ((Place.BEFORE, "before"), (Place.AFTER, "after")) if place in places)
    where = " and ".join([f"{where} each part"] * bool(where) + ["after each sum"] * (Place.STREAM in places))
    return f"{', '.join(norms)} {where}" + (", q and k too" if of_heads else "") if norms else ""


def _positions(m: Model) -> str:
    roles = {n.role for n in m.trace.root.walk()}
    turned = [
        any(n.role in ROPES for n in layer.walk())
        for layer in kinds(m)
        if any(n.role is Role.ATTENTION for n in layer.walk())
    ]
    ways = ["learned"] * (INPUT_TABLES[1] in roles) + ["ALiBi"] * any(map(is_alibi, m.trace.root.walk()))
    if any(turned):
        ways.append("rotary" if all(turned) else "rotary, none in some layers")
    return ", ".join(ways) or ("by the recurrence" if has_fixed_state(m) else "none")


def _window(m: Model) -> int | None:
    """The size of the window, in a model that has layers with one."""
    return next((int(k.mask.size) for k in m.counts.kept if isinstance(k.mask, SlidingWindow)), None)


def _activation(m: Model) -> str:
    for part in m.counts.parts:
        if part.category is Category.FEED_FORWARD:
            steps = {n.role for n in part.node.walk()}
            slope = getattr(m.config, "gate_slope", None)
            bends = (
                [f"Swish of slope {slope}"]
                if slope
                else [title for role, title in ACTIVATION_TITLES.items() if role in steps]
            )
            gated = any(
                n.function is np.multiply and len([a for a in n.inputs if a.ndim > 1]) == 2
                for n in part.node.walk()
                if not n.is_inside(*ACTIVATION_TITLES)
            )
            if bends:
                return f"{bends[0]}, gated" if gated else bends[0]
    return ""


class Trait(NamedTuple):
    """What models are compared by: its column, how to get it (None where a model has none).

    `is_known` says that None means that a model has none, not that its source does not say.
    """

    column: Column
    get: Callable[[Model], int | str | None]
    is_known: bool = True


def _symbol(name: str) -> Trait:
    return Trait(number(var(name)), lambda m: m.counts.values().get(name))


def _n_kv_heads(m: Model) -> int | None:
    sizes = m.counts.values()
    return None if "kv_lora_rank" in sizes else sizes.get("n_kv_heads", sizes.get("n_heads"))


def _later_growth(m: Model) -> int | None:
    later = m.counts.cache_bytes_per_token()
    return later if later != growth(m) else None


TRAITS = (
    _symbol("d_model"),
    Trait(number(var("n_layers")), n_layers),
    _symbol("n_heads"),
    Trait(number(var("n_kv_heads")), _n_kv_heads),
    _symbol("d_head"),
    _symbol("kv_lora_rank"),
    _symbol("d_ff"),
    _symbol("d_ff_expert"),
    Trait(Column("Experts of a token"), _experts),
    _symbol("vocab_size"),
    Trait(number("Context"), lambda m: limit(m)[0], is_known=False),
    Trait(number("Cache, bytes per token"), growth),
    Trait(number("the same at long context"), _later_growth),
    Trait(Column("Attention"), lambda m: kind_of(m)[1]),
    Trait(number(var("sliding_window")), _window),
    Trait(Column("Positions"), _positions),
    Trait(Column("Activation"), _activation),
    Trait(Column("Norms"), _norms),
    Trait(Column("Biases"), _biases),
    Trait(Column("Head"), lambda m: "tied" if m.counts.is_tied else "its own"),
)


HEADS, KV_HEADS = 2, 3  # of TRAITS


@remembered
def _values(model: Model) -> tuple[int | str | None, ...]:
    return tuple(None if (value := trait.get(model)) == "" else value for trait in TRAITS)


def _released(model: Model) -> object:
    return presets.preset(model.slug).released


def before(model: Model) -> Model | None:
    """The earlier model of the same line: the nearest in size and time of those released before it, of its kind if any
    is."""
    released = _released(model)
    line = disclosed.models(members(presets.preset(model.slug).family))
    earlier = [m for m in line if _is_earlier(_released(m), released)]

    def kind(m: Model) -> tuple[bool, bool]:
        return is_sparse(m), any(k.row is not None for k in m.counts.kept)

    def distance(m: Model) -> float:
        return (
            abs(maths.log2(m.counts.total / model.counts.total)) + (year(released) - year(_released(m))) / HALF_A_YEAR
        )

    return min([m for m in earlier if kind(m) == kind(model)] or earlier, key=distance, default=None)


def _is_earlier(a: object, b: object) -> bool:
    """Whether one date is before another, as far as both are known: May 2024 is not before 6 May 2024."""
    a, b = iso(a), iso(b)
    n = min(len(a), len(b))
    return a[:n] < b[:n]


# The table


def changes(family: str, link: Link | None = None) -> Html:
    """The sizes of a family's models in the order of release; what differs from the earlier model of the line is
    marked."""
    slugs = members(family)
    known = disclosed.models(slugs)
    if not known:
        names = ", ".join(presets.preset(s).name for s in slugs)
        return tag("p", html("The sizes of {} are {}.", names, disclosed.UNDISCLOSED), cls="ep-undisclosed")
    having = [i for i in range(len(TRAITS)) if any(_values(m)[i] is not None for m in known)]
    same = [
        i
        for i in having
        if len(known) > 1 and not TRAITS[i].column.is_number and len({_values(m)[i] for m in known}) == 1
    ]
    own_keys = [i for i in having if i == KV_HEADS and all(_values(m)[i] == _values(m)[HEADS] for m in known)]
    shown = [i for i in having if i not in same + own_keys]
    as_table = table(
        f"{family} in the order of release",
        ["Model", number("Parameters"), *(TRAITS[i].column for i in shown)],
        [_changed(slug, shown, link) for slug in slugs],
        name=f"What {family} changed",
        cls="ep-table ep-changes",
    )
    notes = []
    if any(before(m) for m in known):
        notes.append(
            html(
                "Each model stands beside the earlier one of its kind that is nearest in size and time: half a year "
                "counts as much as a factor of two. What differs is bold, with what it was below."
            )
        )
    if same or own_keys:
        alike = ["a key and value for each head"] * bool(own_keys)
        for i in same:
            title = TRAITS[i].column.title
            alike.append(html("{}: {}", title[0].lower() + title[1:], _values(known[0])[i]))
        notes.append(html("The same in all: {}.", joined(alike, "; ")))
    notes.append(
        html(
            "Cache is what one more token adds, at 2 bytes an element; at long "
            "context windows are full and add nothing."
        )
    )
    notes.append(caveat(slugs))
    return block(as_table, conventions(*notes))


def _changed(slug: str, shown: list[int], link: Link | None) -> list:
    """The row of a model, beside the earlier one of its line."""
    preset, model = presets.preset(slug), disclosed.model(slug)
    head = linked(preset.name, slug, link) + _was(
        tag("time", values.date(preset.released), datetime=iso(preset.released))
    )
    if model is None:
        undisclosed = tag("span", disclosed.UNDISCLOSED, cls="ep-undisclosed")
        return [head, undisclosed, *[Cell("", is_number=False)] * len(shown)]
    old = before(model)
    if old:
        head += _was(f"beside {old.name}")
    c = model.counts
    total = html("{:,}", c.total) + (_was(f"{c.active:,} active") if is_sparse(model) else "")
    earlier = _values(old) if old else [None] * len(TRAITS)
    return [head, total, *(_compared(TRAITS[i], _values(model)[i], earlier[i], old is not None) for i in shown)]


def _was(content: object) -> Html:
    return tag("span", content, cls="ep-was")


def _compared(trait: Trait, now: int | str | None, was: int | str | None, is_compared: bool) -> Html | str:
    said = _said(now)
    if not is_compared or now == was or (not trait.is_known and None in (now, was)):
        return said
    how = (
        "new"
        if was is None
        else f"gone, was {_said(was)}"
        if now is None
        else f"{'↑' if now > was else '↓'} from {_said(was)}"
        if isinstance(now, int) and isinstance(was, int)
        else f"was {_said(was)}"
    )
    return tag("strong", said) + _was(how)


def _said(value: int | str | None) -> str:
    return "–" if value is None else rounding.grouped(value) if isinstance(value, int) else value


# The chart

NAME = 10.5  # the size of a name

DENSE, SPARSE, STATE = (
    Kind("dense", DATA, "circle"),
    Kind("mixture of experts; the line leads down to what a token uses", VIOLET, "triangle"),
    Kind("no attention, or in some layers only", GREEN, "diamond"),
)


def chart(family: str, link: Link | None = None) -> Html:
    """A family's parameters by the date of release, on a logarithmic axis."""
    models = disclosed.models(members(family))
    if len(models) < 2:
        return Html()
    return _chart(family, tuple(m.slug for m in models), tuple(link(m.slug) if link else None for m in models))


@remembered
def _chart(family: str, slugs: tuple[str, ...], links: tuple[str | None, ...]) -> Html:
    models = disclosed.models(slugs)
    years = [year(_released(m)) for m in models]
    low, high = min(m.counts.active for m in models), max(m.counts.total for m in models)
    first_year = maths.floor(min(years))
    x = Scale(first_year, max(maths.ceil(max(years) + 0.05), first_year + 1), PLOT[0], PLOT[2], False)
    y = Scale(low / 1.6, high * 2, PLOT[3], PLOT[1])
    step = 1 if x.most - x.least <= 4 else 2
    year_ticks = [(v, str(v)) for v in range(int(x.least), int(x.most) + 1, step)]
    drawn = [axes(x, y, year_ticks, _ticks(y.least, y.most), "released", "parameters")]
    kinds_of_models = [_kind(m) for m in models]
    points = [(x(when), y(m.counts.total)) for m, when in zip(models, years)]
    taken = [box_of(PLOT[0] + 4, PLOT[1] + 11, "parameters", "start", 11)]
    for m, (px, py), kind in zip(models, points, kinds_of_models):
        said = f"{m.name}: {m.counts.total:,} parameters"
        if is_sparse(m):
            below = y(m.counts.active)
            down = f"M{px:.1f} {py:.1f}V{below:.1f}m-3 0h6"
            drawn.append(element("path", d=down, fill="none", stroke=kind.colour, stroke_width=1))
            taken.append((px - 1, py, px + 1, below))
            said += f", {m.counts.active:,} active"
        drawn.append(mark(kind, px, py, said))
    largest_first = sorted(zip(models, points), key=lambda pair: -pair[0].counts.total)
    for m, own in largest_first:  # names where there is room
        place = _room(m.name, own, [p for p in points if p is not own], taken)
        if place:
            (px, py, side), box = place
            taken.append(box)
            drawn.append(label(px, py, m.name, side, NAME, halo=True))
    below, height = legend([kind for kind in (DENSE, SPARSE, STATE) if kind in kinds_of_models], HEIGHT + 12)
    first, last = (values.date(_released(m)) for m in (models[0], models[-1]))
    described = (
        f"{len(models)} models from {first} to {last}, the smallest of "
        f"{rounding.short(min(m.counts.total for m in models))}, the largest of {rounding.short(high)} parameters."
    )
    rows = [
        [anchor(m.name, url), values.date(_released(m)), f"{m.counts.total:,}", f"{m.counts.active:,}"]
        for m, url in zip(models, links)
    ]
    as_table = table(
        f"Sizes of {family}",
        ["Model", "Released", number("Parameters"), number("Active")],
        rows,
        name=f"Sizes of {family}",
    )
    caption = html(
        "{}, every model by its date of release. The axis of sizes is "
        "logarithmic: each line is {} times the one below.",
        family,
        "ten" if high / low > 30 else "two",
    )
    title = f"{family}: parameters by date of release"
    return figure([svg(height, joined([*drawn, below]), title, described)], caption, as_table)


def _kind(m: Model) -> Kind:
    if has_fixed_state(m):
        return STATE
    return SPARSE if is_sparse(m) else DENSE


def _ticks(least: float, most: float) -> list[tuple[float, str]]:
    """Powers of ten; within a narrow range, doublings of one."""
    if most / least > 100:
        return powers(least, most)
    start = 10 ** maths.floor(maths.log10(least))
    return [(start * 2**k, rounding.short(start * 2**k, 2)) for k in range(12) if least <= start * 2**k <= most]


# Beside a point: how far, and which end of the name is there.
PLACES = (
    (8, 3.5, "start"),
    (-8, 3.5, "end"),
    (0, -8, "middle"),
    (0, 15, "middle"),
    (8, -6, "start"),
    (-8, -6, "end"),
    (8, 13, "start"),
    (-8, 13, "end"),
)


def _room(
    name: str, own: tuple[float, float], others: list[tuple[float, float]], taken: list[Box]
) -> tuple[tuple[float, float, str], Box] | None:
    """Where a name fits beside its point, over nothing and clearly nearer to it than to any other, and its box."""
    left, top, _, bottom = PLOT
    for dx, dy, side in PLACES:
        x, y = own[0] + dx, own[1] + dy
        box = box_of(x, y, name, side, NAME)
        if (
            left <= box[0]
            and box[2] <= WIDTH
            and top - 6 <= box[1]
            and box[3] <= bottom
            and all(apart(box, other) > 1 for other in taken)
            and all(apart(box, (*p, *p)) > apart(box, (*own, *own)) + 3 for p in others)
        ):
            return (x, y, side), box
    return None
