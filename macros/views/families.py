"""What a family changed from one generation to the next: each model beside the earlier one of its line, and a chart of sizes."""

from __future__ import annotations

import math as maths
from collections.abc import Callable

import numpy as np

from ..catalogue import presets
from ..catalogue.presets import Model
from ..counting.parameters import INPUT_TABLES
from ..dependencies import remembered
from ..engine.errors import Problem, nearest
from ..engine.ops import SlidingWindow
from ..engine.steps import FEED_FORWARDS, ROPES, Role
from . import numbers, values, words
from .catalogue import iso
from .charts import (
    HEIGHT,
    PLOT,
    WIDTH,
    Box,
    Kind,
    Scale,
    apart,
    axes,
    box_of,
    figure,
    label,
    legend,
    mark,
    powers,
    svg,
    year,
)
from .markup import block, conventions, row, table, tag, text, var
from .models import all_rows, growth, kind_of, n_layers
from .tables import limit
from .walkthrough import place_of_norm

Link = Callable[[str], str | None]

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
NORM_TITLES = {Role.LAYER_NORM: "LayerNorm", Role.RMS_NORM: "RMSNorm", Role.GATED_RMS_NORM: "RMSNorm"}


def members(family: str) -> list[str]:
    """The models of a family in the order of release, of one day the smallest first. Raises `Problem`."""
    found = [slug for slug, p in all_rows() if p.family == family]
    if not found:
        known = sorted({p.family for _, p in all_rows()})
        raise Problem(
            f"family = {family!r}: no model has it", nearest(str(family), known, f"known ones: {', '.join(known)}")
        )
    return found


# What the models of a family are compared by


def _experts(m: Model) -> str:
    at = m.counts.values()
    if m.counts.active == m.counts.total:
        return ""
    shared = at.get("n_shared_experts", 1 if any("shared_expert" in w.name for w in m.counts.weights) else 0)
    return f"{at['n_experts_per_token']} of {at['n_experts']}" + (f" and {shared} shared" if shared else "")


def _biases(m: Model) -> str:
    """Which matrices of the layers have a bias."""
    found: dict[str, list[str]] = {}
    for part in m.counts.parts:
        if part.kind is None or part.role in NORM_TITLES:
            continue
        norms = {w for n in part.node.walk() if n.role in NORM_TITLES for w in n.all_weights()}
        plain = [
            w
            for w in part.weights
            if w not in norms and not w.name.endswith(("dt_bias", "dt_proj.bias", "conv1d.bias"))
        ]
        biases = [w for w in plain if w.name.endswith("bias")]
        if not biases:
            continue
        matrices = [w for w in plain if len(w.shape) > 1 and not w.name.endswith(("bias", "A_log"))]
        title = (
            "feed-forward" if part.role in FEED_FORWARDS else "attention" if part.role is Role.ATTENTION else "mixer"
        )
        gives = [g for w in biases if (g := words.of_tensor(w.name).gives)]
        if len(biases) < len(matrices):
            title = ", ".join(gives) if title == "attention" and gives else f"part of {title}"
        found.setdefault(title, [])
    return " and ".join(found) or "none"


def _norms(m: Model) -> str:
    """The kind of norm, and what it stands before or after in a layer."""
    found, places, of_heads = {}, {}, False
    for layer in (n for n in m.trace.root.children if n.layers is not None):
        for node in layer.walk():
            if (node.role is Role.UNIT_NORM and node.is_inside(Role.ATTENTION)) or any(
                words.of_tensor(w.name).gives in ("q", "k") for w in node.weights if node.role in NORM_TITLES
            ):
                of_heads = True
            elif node.parent is layer and node.role in NORM_TITLES:
                found[NORM_TITLES[node.role]] = None
                title = place_of_norm(node)
                places["after" if title.endswith("found") else "sum" if title.endswith("stream") else "before"] = None
    where = " and ".join(p for p in ("before", "after") if p in places)
    where = " and ".join([f"{where} each part"] * bool(where) + ["after each sum"] * ("sum" in places))
    return f"{', '.join(found)} {where}" + (", q and k too" if of_heads else "") if found else ""


def _positions(m: Model) -> str:
    roles = {n.role for n in m.trace.root.walk()}
    turned = [
        any(n.role in ROPES for n in layer.walk())
        for layer in m.trace.root.children
        if layer.layers is not None
        if any(n.role is Role.ATTENTION for n in layer.walk())
    ]
    biased = any(
        n.function is np.add and n.parent.role is Role.ATTENTION and n.inputs[0].ndim == 3 for n in m.trace.root.walk()
    )  # a term for each head
    found = ["learned"] * (INPUT_TABLES[1] in roles) + ["ALiBi"] * biased
    if any(turned):
        found.append("rotary" if all(turned) else "rotary, none in some layers")
    return ", ".join(found) or ("by the recurrence" if any(k.row is None for k in m.counts.kept) else "none")


def _window(m: Model) -> int | None:
    """The size of the window, in a model that has layers with one."""
    return next((int(k.mask.size) for k in m.counts.kept if isinstance(k.mask, SlidingWindow)), None)


def _activation(m: Model) -> str:
    for part in m.counts.parts:
        if part.role in FEED_FORWARDS:
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


class Column:
    """A figure of a model: its heading, how to get it (None where a model has none), whether it is a number.

    `is_known` says that None means that a model has none, not that its source does not say.
    """

    def __init__(
        self, title: str, get: Callable[[Model], int | str | None], *, is_number: bool = True, is_known: bool = True
    ):
        self.title, self.get, self.is_number, self.is_known = title, get, is_number, is_known


def _symbol(name: str) -> Column:
    return Column(var(name), lambda m: m.counts.values().get(name))


COLUMNS = (
    _symbol("d_model"),
    Column(var("n_layers"), n_layers),
    _symbol("n_heads"),
    Column(
        var("n_kv_heads"),
        lambda m: None if "kv_lora_rank" in (at := m.counts.values()) else at.get("n_kv_heads", at.get("n_heads")),
    ),
    _symbol("d_head"),
    _symbol("kv_lora_rank"),
    _symbol("d_ff"),
    _symbol("d_ff_expert"),
    Column("Experts of a token", _experts, is_number=False),
    _symbol("vocab_size"),
    Column("Context", lambda m: limit(m)[0], is_known=False),
    Column("Cache, bytes per token", growth),
    Column(
        "the same at long context",
        lambda m: m.counts.cache_bytes_per_token() if m.counts.cache_bytes_per_token() != growth(m) else None,
    ),
    Column("Attention", lambda m: kind_of(m)[1], is_number=False),
    Column(var("sliding_window"), _window),
    Column("Positions", _positions, is_number=False),
    Column("Activation", _activation, is_number=False),
    Column("Norms", _norms, is_number=False),
    Column("Biases", _biases, is_number=False),
    Column("Head", lambda m: "tied" if m.counts.is_tied else "its own", is_number=False),
)


HEADS, KV_HEADS = 2, 3  # of COLUMNS


@remembered
def _values(slug: str) -> tuple[int | str | None, ...]:
    model = values.disclosed(slug)
    return tuple(v if (v := c.get(model)) != "" else None for c in COLUMNS)


def before(slug: str) -> str | None:
    """The earlier model of the same line: of those released before it, and of its kind if there are any, the nearest in size and time."""
    model, p = values.disclosed(slug), presets.preset(slug)
    earlier = [
        s
        for s in members(p.family)
        if values.disclosed(s) is not None and _is_earlier(presets.preset(s).released, p.released)
    ]

    def kind(s: str) -> tuple[bool, bool]:
        m = values.disclosed(s)
        return m.counts.active != m.counts.total, any(k.row is not None for k in m.counts.kept)

    def distance(s: str) -> float:
        return (
            abs(maths.log2(values.disclosed(s).counts.total / model.counts.total))
            + (year(p.released) - year(presets.preset(s).released)) / HALF_A_YEAR
        )

    return min([s for s in earlier if kind(s) == kind(slug)] or earlier, key=distance, default=None)


def _is_earlier(a: object, b: object) -> bool:
    """Whether one date is before another, as far as both are known: May 2024 is not before 6 May 2024."""
    a, b = iso(a), iso(b)
    n = min(len(a), len(b))
    return a[:n] < b[:n]


# The table


def changes(family: str, link: Link | None = None) -> str:
    """The sizes of a family's models in the order of release; what differs from the earlier model of the line is marked."""
    slugs = members(family)
    known = [s for s in slugs if values.disclosed(s) is not None]
    if not known:
        return tag(
            "p",
            f"The sizes of {text(', '.join(presets.preset(s).name for s in slugs))} are {values.UNDISCLOSED}.",
            cls="ep-undisclosed",
        )
    columns = [i for i, c in enumerate(COLUMNS) if any(_values(s)[i] is not None for s in known)]
    same = [
        i for i in columns if len(known) > 1 and not COLUMNS[i].is_number and len({_values(s)[i] for s in known}) == 1
    ]
    own_keys = [i for i in columns if i == KV_HEADS and all(_values(s)[i] == _values(s)[HEADS] for s in known)]
    columns = [i for i in columns if i not in same + own_keys]
    lines = []
    for slug in slugs:
        p, url = presets.preset(slug), link(slug) if link else None
        model = values.disclosed(slug)
        old = before(slug) if model else None
        first = [
            (
                (tag("a", text(p.name), href=url) if url else text(p.name))
                + f'<span class="ep-was"><time datetime="{iso(p.released)}">{values.date(p.released)}</time></span>'
                + (f'<span class="ep-was">beside {text(presets.preset(old).name)}</span>' if old else ""),
                False,
            )
        ]
        if model is None:
            lines.append(
                row(
                    [
                        *first,
                        (f'<span class="ep-undisclosed">{values.UNDISCLOSED}</span>', True),
                        *[("", False)] * len(columns),
                    ]
                )
            )
            continue
        c = model.counts
        active = f'<span class="ep-was">{numbers.grouped(c.active)} active</span>' if c.active != c.total else ""
        lines.append(
            row(
                [
                    *first,
                    (numbers.grouped(c.total) + active, True),
                    *(
                        (
                            _cell(COLUMNS[i], _values(slug)[i], _values(old)[i] if old else None, old is not None),
                            COLUMNS[i].is_number,
                        )
                        for i in columns
                    ),
                ]
            )
        )
    head = [("Model", False), ("Parameters", True), *((COLUMNS[i].title, COLUMNS[i].is_number) for i in columns)]
    made = table(
        f"{text(family)} in the order of release",
        head,
        ["<tbody>", *lines, "</tbody>"],
        f"What {family} changed",
        cls="ep-table ep-changes",
    )
    notes = [
        "Each model stands beside the earlier one of its kind that is nearest in size and time: half a year counts as much as a factor of two. "
        "What differs is bold, with what it was below."
        if any(before(s) for s in known)
        else ""
    ]
    if same or own_keys:
        notes.append(
            "The same in all: "
            + "; ".join(
                ["a key and value for each head"] * bool(own_keys)
                + [f"{COLUMNS[i].title[0].lower() + COLUMNS[i].title[1:]}: {text(_values(known[0])[i])}" for i in same]
            )
            + "."
        )
    return block(
        made,
        conventions(
            *notes,
            "Cache is what one more token adds, at 2 bytes an element; at long context windows are full and add nothing.",
        ),
    )


def _cell(column: Column, now: int | str | None, was: int | str | None, is_compared: bool) -> str:
    said = _said(now)
    if not is_compared or now == was or (not column.is_known and None in (now, was)):
        return said
    how = (
        "new"
        if was is None
        else f"gone, was {_said(was)}"
        if now is None
        else f"{'↑' if now > was else '↓'} from {_said(was)}"
        if isinstance(now, int)
        else f"was {_said(was)}"
    )
    return f'<strong>{said}</strong><span class="ep-was">{how}</span>'


def _said(v: int | str | None) -> str:
    return "–" if v is None else numbers.grouped(v) if isinstance(v, int) else text(v)


# The chart

NAME = 10.5  # the size of a name

DENSE, SPARSE, STATE = (
    Kind("dense", "var(--ep-data, #2563c9)", "circle"),
    Kind("mixture of experts; the line leads down to what a token uses", "#8a6bc4", "triangle"),
    Kind("no attention, or in some layers only", "#1a9384", "diamond"),
)


def chart(family: str, link: Link | None = None) -> str:
    """A family's parameters by the date of release, on a logarithmic axis."""
    slugs = [s for s in members(family) if values.disclosed(s) is not None]
    if len(slugs) < 2:
        return ""
    return _chart(family, tuple(slugs), tuple(link(s) if link else None for s in slugs))


@remembered
def _chart(family: str, slugs: tuple[str, ...], links: tuple[str | None, ...]) -> str:
    models = [values.disclosed(s) for s in slugs]
    years = [year(m.preset.released) for m in models]
    low, high = min(m.counts.active for m in models), max(m.counts.total for m in models)
    x = Scale(
        maths.floor(min(years)),
        max(maths.ceil(max(years) + 0.05), maths.floor(min(years)) + 1),
        PLOT[0],
        PLOT[2],
        False,
    )
    y = Scale(low / 1.6, high * 2, PLOT[3], PLOT[1])
    step = 1 if x.most - x.least <= 4 else 2
    out = axes(
        x,
        y,
        [(v, str(v)) for v in range(int(x.least), int(x.most) + 1, step)],
        _ticks(y.least, y.most),
        "released",
        "parameters",
    )
    kinds, marks, placed = [_kind(m) for m in models], "", ""
    points, taken = (
        [(x(at), y(m.counts.total)) for m, at in zip(models, years)],
        [box_of(PLOT[0] + 4, PLOT[1] + 11, "parameters", "start", 11)],
    )
    for m, at, k in zip(models, years, kinds):
        px, py = x(at), y(m.counts.total)
        if m.counts.active != m.counts.total:
            below = y(m.counts.active)
            marks += (
                f'<path d="M{px:.1f} {py:.1f}V{below:.1f}m-3 0h6" style="fill:none;stroke:{k.colour};stroke-width:1"/>'
            )
            taken.append((px - 1, py, px + 1, below))
        marks += mark(
            k,
            px,
            py,
            f"{m.name}: {numbers.grouped(m.counts.total)} parameters"
            + (f", {numbers.grouped(m.counts.active)} active" if m.counts.active != m.counts.total else ""),
        )
    for m, own in sorted(
        zip(models, points), key=lambda mp: -mp[0].counts.total
    ):  # names where there is room, the largest first
        spot = _room(m.name, own, [p for p in points if p is not own], taken)
        if spot:
            taken.append(spot[1])
            placed += label(*spot[0], size=NAME, halo=True)
    below, height = legend([k for k in (DENSE, SPARSE, STATE) if k in kinds], HEIGHT + 12)
    first, last = models[0], models[-1]
    said = (
        f"{len(models)} models from {values.date(first.preset.released)} to {values.date(last.preset.released)}, the smallest of {numbers.short(min(m.counts.total for m in models))}, "
        f"the largest of {numbers.short(high)} parameters."
    )
    rows = [
        row(
            [
                (tag("a", text(m.name), href=url) if url else text(m.name), False),
                (values.date(m.preset.released), False),
                (numbers.grouped(m.counts.total), True),
                (numbers.grouped(m.counts.active), True),
            ]
        )
        for m, url in zip(models, links)
    ]
    made = table(
        f"Sizes of {text(family)}",
        [("Model", False), ("Released", False), ("Parameters", True), ("Active", True)],
        ["<tbody>", *rows, "</tbody>"],
        f"Sizes of {family}",
    )
    return figure(
        [svg(height, out + marks + placed + below, f"{family}: parameters by date of release", said)],
        f"{text(family)}, every model by its date of release. The axis of sizes is logarithmic: each line is {'ten' if high / low > 30 else 'two'} times the one below.",
        made,
    )


def _kind(m: Model) -> Kind:
    if any(k.row is None for k in m.counts.kept):
        return STATE
    return DENSE if m.counts.active == m.counts.total else SPARSE


def _ticks(least: float, most: float) -> list[tuple[float, str]]:
    """Powers of ten; within a narrow range, doublings of one."""
    if most / least > 100:
        return powers(least, most)
    start = 10 ** maths.floor(maths.log10(least))
    return [(start * 2**k, numbers.short(start * 2**k, 2)) for k in range(12) if least <= start * 2**k <= most]


def _room(
    name: str, own: tuple[float, float], others: list[tuple[float, float]], taken: list[Box]
) -> tuple[tuple, Box] | None:
    """Where a name fits beside its point, over nothing and clearly nearer to it than to any other: ((x, y, text, anchor), its box); None where nowhere."""
    for dx, dy, anchor in (
        (8, 3.5, "start"),
        (-8, 3.5, "end"),
        (0, -8, "middle"),
        (0, 15, "middle"),
        (8, -6, "start"),
        (-8, -6, "end"),
        (8, 13, "start"),
        (-8, 13, "end"),
    ):
        at = own[0] + dx, own[1] + dy
        box = box_of(*at, name, anchor, NAME)
        inside = PLOT[0] <= box[0] and box[2] <= WIDTH and PLOT[1] - 6 <= box[1] and box[3] <= PLOT[3]
        if (
            inside
            and all(apart(box, t) > 1 for t in taken)
            and all(apart(box, p * 2) > apart(box, own * 2) + 3 for p in others)
        ):
            return (*at, name, anchor), box
    return None
