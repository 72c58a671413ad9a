"""Tables: a model's tensors, its figures beside the published ones, its costs, several models side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache, lru_cache

from ..catalogue import presets
from ..catalogue.presets import Model
from ..counting.parameters import HEAD, INPUT_TABLES
from ..dependencies import remembered
from ..engine.architectures import architectures
from ..engine.architectures.config import fields_of
from ..engine.dims import Poly, latex_name
from ..engine.errors import Problem
from ..engine.tensors import Weight
from . import notation, numbers, values, words
from .markup import block, conventions, in_numbers, in_symbols, layer_range, row, table, tag, text, var

Link = Callable[[str], str | None]

CONTEXTS = tuple(2**k for k in range(10, 18))


def undisclosed(slug: str, what: str) -> str:
    """One sentence in the place of a view of a model without sizes."""
    preset = presets.preset(slug)
    return tag(
        "p",
        f"{text(preset.organization)} has not disclosed the sizes of {text(preset.name)}: {what} is {values.UNDISCLOSED}.",
        cls="ep-undisclosed",
    )


class Group:
    """Rows of a parameter table that belong together: a part, in one kind of layer."""

    def __init__(self, title: str, node, weights: list[Weight], loose: bool = False):
        self.title, self.node, self.weights = title, node, weights

    @property
    def count(self) -> int:
        return sum(int(w.count) for w in self.weights)

    @property
    def poly(self) -> Poly:
        return sum((w.count.expr for w in self.weights), Poly.of(0))

    @property
    def layers(self) -> tuple[int, ...] | None:
        return self.weights[0].layers

    @property
    def layer_symbol(self) -> Poly:
        return Poly.of(self.weights[0].layer_count)


@remembered
def groups(model: Model) -> list[Group]:
    """The model's parts in forward order, the norms of a kind of layer together and last in it."""
    counts = model.counts
    found: dict[tuple, Group] = {}
    seen: set[Weight] = set()
    ordered = []
    for node in counts.trace.root.children:
        inner = node.children if node.layers is not None else [node]
        late = [n for n in inner if node.layers is not None and words.group(n) == "Norms"]
        for n in [*(n for n in inner if n not in late), node, *late]:
            own = n.weights if n is node and node.layers is not None else n.all_weights()
            fresh = [w for w in own if not w.is_buffer and w not in seen]
            seen.update(fresh)
            if fresh:
                title = words.group(n)
                if title == "Norms" and node.layers is None:
                    title = "Last norm" if any(g.layers for g in ordered) else "First norm"
                key = (title, fresh[0].layers)
                if key not in found:
                    found[key] = Group(title, n, [])
                    ordered.append(found[key])
                found[key].weights += fresh
    missing = [w for w in counts.weights if w not in seen]
    return ordered + ([Group("Other", counts.trace.root, missing)] if missing else [])


def group_title(group: Group, model: Model) -> str:
    """`Attention, layers 0–31`; HTML."""
    kinds = {n.layers: words.of_kind(n.kind) for n in model.trace.root.children if n.layers is not None}
    where = layer_range(group.layers)
    return text(group.title) + (
        f" in {where} ({text(kinds[group.layers])})"
        if where and len(kinds) > 1
        else f" × {len(group.layers)} layers"
        if where and len(group.layers) > 1
        else ""
    )


def copies(weight: Weight) -> str:
    """How many tensors of the file a row stands for: `32`, `58 × 256`; HTML."""
    parts = [
        n
        for n in ([int(weight.layer_count)] if weight.layers is not None else [])
        + ([int(weight.members)] if weight.members is not None else [])
        if n != 1
    ]
    return " × ".join(map(numbers.grouped, parts)) or "1"


@remembered
def parameter_table(slug: str) -> str:
    """Every tensor of the checkpoint with its shape and count, grouped by part, to the exact total."""
    model = values.disclosed(slug)
    return undisclosed(slug, "its parameter table") if model is None else of_model(model)


def of_model(model: Model) -> str:
    """The parameter table of any model, a preset's or a foreign config's."""
    counts, at, total = model.counts, model.counts.values(), model.counts.total
    bodies = []
    for group in groups(model):
        rows = [f'<tr class="ep-part"><th colspan="6" scope="rowgroup">{group_title(group, model)}</th></tr>']
        experts = _experts(group)
        for w in group.weights:
            if experts and w.routed is not None:
                rows.append(experts)
                experts = ""
            one = int(w.count) // int(w.copies)
            rows.append(
                row(
                    [
                        (tensor_name(w.name), False),
                        (_both(w.shape, at), False),
                        (numbers.grouped(one), True),
                        (copies(w), True),
                        (numbers.grouped(int(w.count)), True),
                        (text(numbers.percent(int(w.count), total)), True),
                    ]
                )
            )
        if len(group.weights) > 1:
            rows.append(_sum_row(f"{text(group.title)}, together", group.count, total, "subtotal"))
        bodies.append(f"<tbody>{''.join(rows)}</tbody>")
    end = []
    if counts.is_tied:
        [tied, *_] = _tied(model)
        end.append('<tr class="ep-part"><th colspan="6" scope="rowgroup">Head</th></tr>')
        end.append(
            row(
                [
                    (f"same tensor as {tensor_name(tied.name)}", False),
                    (_both(tied.shape, at), False),
                    ("", True),
                    ("", True),
                    ("0", True),
                    ("", True),
                ]
            )
        )
    end.append(_sum_row("Parameters in all", total, total, "total"))
    extra = model.preset.published.extra if model.preset and model.preset.published else ()
    if model.stored != total:
        for w in counts.buffers:
            end.append(
                row(
                    [
                        (f"{tensor_name(w.name)} (buffer, not trained)", False),
                        (_both(w.shape, at), False),
                        (numbers.grouped(int(w.count) // int(w.copies)), True),
                        (copies(w), True),
                        (numbers.grouped(int(w.count)), True),
                        ("", True),
                    ]
                )
            )
        for e in extra:
            end.append(_sum_row(text(e.name), e.count, 0))
        published = model.preset.published if model.preset else None
        counted = (
            f"As published: {text(published.source)}"
            if published and published.exact
            else "Parameters and buffers in all"
        )
        end.append(_sum_row(counted, model.stored, 0, "total"))
    bodies.append(f"<tbody>{''.join(end)}</tbody>")
    head = [
        ("Tensor", False),
        ("Shape", False),
        ("One copy", True),
        ("Copies", True),
        ("Parameters", True),
        ("Share", True),
    ]
    caption = f"Every tensor of {text(model.name)}, in the order of the forward pass"
    stacked = any(w.members is not None for w in counts.weights)
    return block(
        table(caption, head, bodies, f"Parameter table of {model.name}", "ep-table ep-tensors"),
        conventions(
            f"<code>{text('{i}')}</code> stands for the layer{' and <code>' + text('{e}') + '</code> for the expert' if stacked else ''}.",
            names_line(model),
            "A tied table counts once." if counts.is_tied else "",
            "Shapes are those of the file: a matrix that a vector is multiplied by may be stored either way round.",
        ),
    )


def _experts(group: Group) -> str:
    """A line for the routed experts of a part: experts × one expert; empty where it has none."""
    routed = [w for w in group.weights if w.routed is not None]
    if not routed:
        return ""
    held, used = map(int, routed[0].routed)
    layer = sum(int(w.count) // int(w.layer_count) for w in routed)
    n = len(group.layers or (0,))
    return (
        f'<tr class="ep-experts"><th colspan="6" scope="row">{held:,} experts × {numbers.grouped(layer // held)} parameters = {numbers.grouped(layer)} in each '
        f"{'of the ' + str(n) + ' layers' if n > 1 else 'layer'}; a token uses {used:,}</th></tr>"
    )


def _both(shape, at) -> str:
    return f"{in_symbols(shape)}<br>{in_numbers(shape, at)}"


def tensor_name(name: str) -> str:
    """A tensor's name, which may break after each dot; HTML."""
    return f"<code>{text(name).replace('.', '.<wbr>')}</code>"


def names_line(model: Model) -> str:
    """Whether the tensor names were compared with the published file's; HTML."""
    if model.preset is None:
        return "Tensor names are those of transformers for this architecture; no file was compared."
    if model.names_verified:
        return "Names and shapes were compared with the published file’s, tensor by tensor."
    if model.preset.hub is None:
        return (
            "No file with these weights was published: the names are those of the same architecture’s published files."
        )
    return "Names are those of transformers; they were not compared with the published file’s."


def _tied(model: Model) -> list[Weight]:
    nodes = model.trace.root.children
    inputs = {w for n in nodes if n.role is INPUT_TABLES[0] for w in n.all_weights()}
    return [w for n in nodes if n.role is HEAD for w in n.all_weights() if w in inputs]


def _sum_row(title: str, count: int, whole: int, cls: str | None = None) -> str:
    share = text(numbers.percent(count, whole)) if whole else ""
    return (
        f'<tr{f" class={chr(34)}{cls}{chr(34)}" if cls else ""}><th colspan="4" scope="row">{title}</th>'
        f'<td class="num">{numbers.grouped(count)}</td><td class="num">{share}</td></tr>'
    )


# Kinds of layers


@remembered
def layer_table(slug: str) -> str:
    """Each kind of layer of a model: which layers are of it, how many, and their parameters."""
    model = values.disclosed(slug)
    if model is None:
        return undisclosed(slug, "the kinds of its layers")
    rows = []
    for node in (n for n in model.trace.root.children if n.layers is not None):
        count = sum(int(w.count) for w in model.counts.weights if w.layers == node.layers)
        n, where = len(node.layers), layer_range(node.layers)
        if "…" in where:
            where = "layers " + ", ".join(map(str, node.layers))
        rows.append(
            row(
                [
                    (text(words.of_kind(node.kind)), False),
                    (text(where), False),
                    (str(n), True),
                    (numbers.grouped(count // n), True),
                    (numbers.grouped(count), True),
                ]
            )
        )
    return table(
        f"The {sum(len(n.layers) for n in model.trace.root.children if n.layers is not None)} layers of {text(model.name)}, by kind",
        [("Kind", False), ("Which", False), ("How many", True), ("Parameters of one", True), ("Together", True)],
        [f"<tbody>{''.join(rows)}</tbody>"],
        f"Kinds of layers of {model.name}",
    )


# Which number?


@remembered
def which_number(slug: str) -> str:
    """The counts that are all called "the size", each difference explained down to zero."""
    model = values.disclosed(slug)
    if model is None:
        return undisclosed(slug, "every count of it")
    counts, preset = model.counts, model.preset
    published = preset.published if preset else None
    figures = [published, *published.other] if published else []
    total = ("Unique trainable parameters", counts.total)

    start = [_result(*total, "each tensor once" + (", the tied table too" if counts.is_tied else ""))]
    if preset and preset.headline:
        start.insert(0, _line("The maker’s headline", text(preset.headline), _headline(model, preset.headline)))
    sections = [("The model", start)]
    if counts.embedding:
        sections.append(
            (
                "Without the tables at both ends",
                [
                    _result(*total),
                    *(_step(tensor_name(w.name), -int(w.count), what) for w, what in _tables(model)),
                    _result("Non-embedding", counts.non_embedding, "what scaling laws count"),
                ],
            )
        )
    if counts.active != counts.total:
        sections.append(("What one token uses", _active(model, total)))
    alike = [f for f in figures if f.exact and f.parameters == counts.total and not f.extra]
    if alike:
        sections.append(
            (
                "Counted alike elsewhere",
                [_result("Published", f.parameters, f"{text(f.source)}; the same number") for f in alike],
            )
        )
    for f in figures:
        if f not in alike:
            sections.append((text(f.source), _published(model, f, total)))
    head = [("Which number", False), ("Count", True), ("What it means", False)]
    bodies = [
        f'<tbody><tr class="ep-part"><th colspan="3" scope="rowgroup">{title}</th></tr>{"".join(rows)}</tbody>'
        for title, rows in sections
    ]
    return block(
        table(
            f"Which number is “the size” of {text(model.name)}?",
            head,
            bodies,
            f"The counts of {model.name}",
            "ep-table ep-which",
        ),
        conventions(
            _contradiction(model), "Lines that start with + or − lead from the count above them to the one below."
        ),
    )


def _line(title: str, number: str, why: str, cls: str = "") -> str:
    return f'<tr{f" class={chr(34)}{cls}{chr(34)}" if cls else ""}><th scope="row">{title}</th><td class="num">{number}</td><td>{why}</td></tr>'


def _result(title: str, n: int, why: str = "") -> str:
    return _line(title, numbers.grouped(n), why, "total")


def _step(title: str, n: int, why: str) -> str:
    return _line(title, ("+" if n > 0 else "") + numbers.grouped(n), why, "ep-step")


def _active(model: Model, total: tuple[str, int]) -> list[str]:
    """From the total to what a token uses, by both conventions, and what the maker gives."""
    counts, published = model.counts, model.preset.published if model.preset else None
    idle: dict[str, list[Weight]] = {}
    for w in counts.weights:
        if int(w.active) != int(w.count):
            idle.setdefault(w.name, []).append(w)  # of every kind of layer
    rows = [_result(*total)]
    for name, found in idle.items():
        held, used = map(int, found[0].routed)
        n = sum(int(w.layer_count) for w in found)
        rows.append(
            _step(
                tensor_name(name),
                sum(int(w.active) - int(w.count) for w in found),
                f"{held - used:,} of {held:,} experts that a token does not choose, in {n:,} {'layer' if n == 1 else 'layers'}",
            )
        )
    rows.append(_result("Active per token", counts.active, "what one token is multiplied by; tables and head in full"))
    excluding = counts.active_excluding_input_embedding
    if excluding != counts.active:
        rows += [
            _step("the input table", excluding - counts.active, "a look-up of one row"),
            _result("Active without the input table", excluding, "another convention in use"),
        ]
    if published and published.active:
        rows.append(
            _line(
                "The maker’s figure",
                text(published.active),
                _rounded(
                    published.active,
                    [("active per token", counts.active), ("active without the input table", excluding)],
                )
                + (f"; {text(published.active_source)}" if published.active_source else ""),
            )
        )
    return rows


def _headline(model: Model, said: str) -> str:
    """Which count a maker's headline rounds."""
    counts, published = model.counts, model.preset.published
    known = [("the unique parameters", counts.total)]
    if said.startswith("A"):
        known = [
            ("active per token", counts.active),
            ("active without the input table", counts.active_excluding_input_embedding),
        ]
    elif published:
        known += [("what the published file holds", f.parameters) for f in (published, *published.other) if f.exact]
        known.append(("non-embedding", counts.non_embedding))
    return _rounded(said.removeprefix("A"), known)


_SHORT = re.compile(r"[~≈]?(\d+)(?:\.(\d+))?([MBT])")


def _rounded(said: str, known: list[tuple[str, int]]) -> str:
    """The count that a rounded figure comes from: the first of these that rounds to it, else how far the first is off."""
    parts = _SHORT.fullmatch(said.strip())
    if parts is None:
        return "a name, not a count"
    scale = Fraction(numbers.SCALES[parts[3]], 10 ** len(parts[2] or ""))
    digits = parts[1] + (parts[2] or "")
    figure, coarse = int(digits) * scale, scale * 10 ** (len(digits) - len(digits.rstrip("0")))
    for what, n in known:
        if abs(n - figure) <= scale / 2 or abs(n - figure) <= min(coarse / 2, figure / 50):
            return f"{what}, rounded: {numbers.grouped(n)}"
    what, n = known[0]
    return f"none of these counts rounds to it: {numbers.grouped(n)}, {what}, {_off(n, figure)}"


def _off(n: int, figure: int | Fraction) -> str:
    """How far a count is from a rounded figure."""
    share = Fraction(n) / figure - 1
    off = numbers.signed_percent(share.numerator, share.denominator, 2)
    return f"is {text(off)} from it" if "<" not in off else "is less than 0.01% from it"


def _tables(model: Model) -> list[tuple[Weight, str]]:
    """The tables at either end of the model, each with what it is used for."""
    uses: dict[Weight, list[str]] = {}
    for node in model.trace.root.children:
        for role, what in (
            (INPUT_TABLES[0], "the input table"),
            (INPUT_TABLES[1], "the position table"),
            (HEAD, "the head"),
        ):
            for w in node.all_weights() if node.role is role else ():
                if not w.is_buffer:
                    uses.setdefault(w, []).append(what)
    return [(w, " and ".join(what)) for w, what in uses.items()]


def _published(model: Model, published, total: tuple[str, int]) -> list[str]:
    """From the total to a published figure, each difference by name and count."""
    counts = model.counts
    if not published.exact:
        n = published.parameters
        return [
            _result(*total),
            _step(
                "rounded there",
                n - counts.total,
                f"the count {_off(counts.total, n)}; nothing exact can be held to a rounded figure",
            ),
            _result("Published, rounded", n),
        ]
    rows, here = [_result(*total)], counts.total
    for name in dict.fromkeys(w.name for w in counts.buffers):
        n = sum(int(w.count) for w in counts.buffers if w.name == name)
        rows.append(_step(tensor_name(name), n, "a buffer: stored, not trained"))
        here += n
    for e in published.extra:
        rows.append(
            _step(
                text(e.name),
                e.count,
                "counted there, no part of this forward pass" if e.count > 0 else "not counted there",
            )
        )
        here += e.count
    return [
        *rows,
        _result("Published", published.parameters, f"unexplained: {numbers.grouped(published.parameters - here)}"),
    ]


def _contradiction(model: Model) -> str:
    """A config whose heads together are not as wide as the model: a design, or a slip of a paper; HTML."""
    at = model.counts.values()
    if not {"n_heads", "d_head", "d_model"} <= at.keys():
        return ""
    together = at["n_heads"] * at["d_head"]
    if together == at["d_model"]:
        return ""
    product = f"{var('n_heads')} × {var('d_head')} = {at['n_heads']:,} × {at['d_head']:,} = {together:,}"
    if any("d_head" in d.symbols for w in model.counts.weights for d in w.shape):
        return f"The heads together are not as wide as the model: {product}, and {var('d_model')} = {at['d_model']:,}. The projections change the width on the way in and out."
    return (
        f"The source contradicts itself: {product}, and {var('d_model')} = {at['d_model']:,} (a difference of {numbers.grouped(together - at['d_model'])}). "
        f"Attention is taken to be as wide as {var('d_model')} here."
    )


# Comparison


def comparison(
    slugs: Iterable[str], columns: Iterable[str], context: int | None = None, link: Link | None = None
) -> str:
    """Models × chosen figures; each model's name leads to its page."""
    slugs, columns = tuple(_several(slugs, "models")), [_labelled(c) for c in _several(columns, "columns")]
    head = [("Model", False), *((label, _is_number(c)) for c, label in columns)]
    rows = []
    for slug in slugs:
        name, target = text(presets.preset(slug).name), link(slug) if link else None
        rows.append(
            row(
                [
                    (f'<a href="{text(target)}">{name}</a>' if target else name, False),
                    *((_cell(slug, c, context), _is_number(c)) for c, _ in columns),
                ]
            )
        )
    used, known = {n for c, _ in columns for n in _names(c)}, {s: m for s in slugs if (m := values.disclosed(s))}
    at = f" at {context:,} tokens" if context and used & values.AT_CONTEXT.keys() else ""
    notes = []
    if any("cache" in n for n in used):
        notes.append("KV cache at 2 bytes an element.")
    if any("flops" in n for n in used):
        notes.append("A multiply-add is 2 FLOPs.")
    if "stored" in used:
        notes.append(
            "Numbers in the file: the hub’s total for the model’s file, or for that of a release with the same shapes"
            + ("; “–” where none was published." if None in map(values.in_file, known.values()) else ".")
        )
    if (
        latent := [text(m.name) for m in known.values() if "kv_lora_rank" in m.counts.values()]
        if "n_kv_heads" in used
        else ()
    ):
        notes.append(
            f"“–” for {var('n_kv_heads')}: {_and(latent)} {'keeps latents' if len(latent) == 1 else 'keep latents'}, from which the keys and values of all heads are made."
        )
    if (
        past := [
            f"{text(m.name)} {limit(m)[0]:,}" + (" (position table)" if limit(m)[1] else "")
            for m in known.values()
            if _is_past(context, m)
        ]
        if at
        else ()
    ):
        notes.append(f"† beyond the tokens that the config allows: {', '.join(past)}.")
    if len(known) < len(set(slugs)):
        notes.append(f"“{values.UNDISCLOSED}”: the maker has published no sizes, and guesses are left out.")
    made = table(
        f"{len(slugs)} models side by side{at}", head, [f"<tbody>{''.join(rows)}</tbody>"], "Comparison of models"
    )
    return block(made, conventions(*notes)) if notes else made


def _several(given: object, name: str) -> Iterable[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise Problem(f"{name} = {given!r}: expected a list", f'write {name}=["…", "…"]')
    return given


def _and(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _labelled(column: object) -> tuple[str, str]:
    """A column's figure, and what its head says: the label given with it, or the figure itself; HTML."""
    match column:
        case str():
            made = _spelt(column)
            return column, made[:1].upper() + made[1:]
        case (str(label), str(name)):
            return name, text(label)
    raise Problem(
        f"columns holds {column!r}: expected a figure, or a label with it",
        'write "d_ff / d_model", or ("times as wide", "d_ff / d_model")',
    )


def _spelt(source: str) -> str:
    """A figure or a formula of figures as people write it: sizes by name, counts in words, `·` for `*`; HTML."""

    def spell(m: re.Match) -> str:
        if m["name"]:
            return var(m[0]) if notation.known(m[0]) or m[0] in _all_symbols() else text(values.heading(m[0]))
        return (
            tag("sup", m["power"])
            if m["power"]
            else {"*": "·", "/": " / ", "//": " / ", "-": " − ", "+": " + "}.get(m[0].strip()) or text(m[0])
        )

    return re.sub(r"(?P<name>[A-Za-z_]\w*)|\s*\*\*\s*(?P<power>\d+)|\s*(?://|[*/+-])\s*|.", spell, source)


def _names(source: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*", source)


def _is_number(name: str) -> bool:
    return name not in values.ABOUT


def _cell(slug: str, name: str, context: int | None) -> str:
    try:
        made = values.value(slug, name, context=context)
    except Problem:
        if name in values.PUBLISHED or name.isidentifier() and (notation.known(name) or name in _all_symbols()):
            return "–"
        raise
    model = values.disclosed(slug)
    is_past = model is not None and not values.AT_CONTEXT.keys().isdisjoint(_names(name)) and _is_past(context, model)
    return f"{_PAST} {made}" if is_past else made


@lru_cache(maxsize=1)
def _all_symbols() -> frozenset[str]:
    """Every size that some architecture's config has."""
    return frozenset(k.field for a in architectures().values() for k in fields_of(a.config) if k.is_size)


# Costs


def _model_or_line(slug: str, what: str) -> tuple[Model | None, str]:
    model = values.disclosed(slug)
    return model, "" if model else undisclosed(slug, what)


def limit(model: Model) -> tuple[int | None, bool]:
    """The longest context: (tokens, whether a learned position table ends there); None where nothing says."""
    at = model.counts.values()
    if "n_positions" in at:
        return at["n_positions"], True
    n = (model.preset.config or {}).get("max_position_embeddings") if model.preset else None
    return (n if isinstance(n, int) and not isinstance(n, bool) else None), False


def contexts(model: Model) -> list[int]:
    """1K to 128K tokens; where a learned position table ends, up to there."""
    end, hard = limit(model)
    return [c for c in CONTEXTS if not (hard and c > end)] or [end]


_PAST = '<span class="ep-mark" title="beyond the context that the config allows">†</span>'


def _is_past(context: int, model: Model) -> bool:
    end, _ = limit(model)
    return end is not None and context > end


def _context_cell(context: int, model: Model) -> str:
    return f"{context:,}" + (f" {_PAST}" if _is_past(context, model) else "")


def _limit_line(model: Model) -> str:
    end, hard = limit(model)
    if end is None:
        return ""
    if hard:
        return f"The position table ends at {end:,} tokens."
    return f"† beyond the {end:,} tokens of the config." if end < CONTEXTS[-1] else ""


def cache_poly(model: Model) -> Poly:
    """Elements of the cache after a step, of all layers together."""
    return sum((k.elements for k in model.counts.kept), Poly.of(0))


@remembered
def kv_cache(slug: str) -> str:
    """The KV cache: its formula and its size at growing contexts."""
    from .formulas import math

    model, line = _model_or_line(slug, "its KV cache")
    if model is None:
        return line
    counts = model.counts
    fixed = any(k.item_bytes for k in counts.kept)
    rows = "".join(
        row(
            [
                (_context_cell(c, model), True),
                (numbers.grouped(counts.cache_bytes(c)), True),
                (numbers.binary_bytes(counts.cache_bytes(c)), True),
                (numbers.decimal_bytes(counts.cache_bytes(c)), True),
            ]
        )
        for c in contexts(model)
    )
    made = table(
        f"KV cache of {text(model.name)} for one text",
        [("Context, tokens", True), ("Bytes", True), ("In GiB", True), ("In GB", True)],
        [f"<tbody>{rows}</tbody>"],
        f"KV cache of {model.name}",
    )
    slope, index = counts.cache_bytes_per_token(), counts.index_bytes_per_token()
    uncapped = counts.cache_bytes_per_token_uncapped() + index
    symbolic = cache_poly(model)
    formula = (
        f"<p>Elements kept after {var('S')} tokens:</p>"
        + tag("div", math(symbolic.latex(), True), cls="ep-math", tabindex=0, role="region", aria_label="formula")
        + tag(
            "p",
            f"One more token adds {numbers.grouped(slope)} bytes"
            + (
                f" at long context ({numbers.grouped(uncapped)} as long as no window is full)"
                if uncapped != slope
                else ""
            )
            + (f", of which {numbers.grouped(index)} are keys of the indexer" if index else "")
            + ".",
        )
    )
    return block(
        formula,
        made,
        conventions(
            "2 bytes an element"
            + (", fixed state at its own size" if fixed else "")
            + "; 1 GiB = 2<sup>30</sup> bytes, 1 GB = 10<sup>9</sup>.",
            "Windows hold the last tokens only, so bytes per token are not constant." if uncapped != slope else "",
            _limit_line(model),
        ),
    )


@remembered
def flops(slug: str) -> str:
    """FLOPs of one new token and of reading a whole text: the formula and figures at growing contexts."""
    from .formulas import math, total_latex

    model, line = _model_or_line(slug, "its FLOPs")
    if model is None:
        return line
    counts = model.counts
    rows = "".join(
        row(
            [
                (_context_cell(c, model), True),
                (numbers.grouped(counts.decode_flops(c)), True),
                (numbers.flops(counts.decode_flops(c)), True),
                (numbers.grouped(counts.prefill_flops(c)), True),
                (numbers.flops(counts.prefill_flops(c)), True),
            ]
        )
        for c in contexts(model)
    )
    made = table(
        f"FLOPs of {text(model.name)}",
        [
            ("Context, tokens", True),
            ("One new token", True),
            ("rounded", True),
            ("The whole text", True),
            ("rounded", True),
        ],
        [f"<tbody>{rows}</tbody>"],
        f"FLOPs of {model.name}",
    )
    decode = counts.flops.replace(lambda a: Poly.of(1) if a == "T" else None)
    formula = f"<p>One new token that sees {var('S')}:</p>" + tag(
        "div",
        math(total_latex(decode, latex_name), True),
        cls="ep-math",
        tabindex=0,
        role="region",
        aria_label="formula",
    )
    return block(formula, made, conventions(*FLOP_CONVENTIONS, _limit_line(model)))


FLOP_CONVENTIONS = (
    "A multiply-add is 2 FLOPs; contractions and the multiply-adds of recurrences and convolutions count, a look-up is 0, other element-wise work is left out.",
    "Attention scores in full, not only their causal half; logits of the last token only.",
)


@remembered
def costs(slug: str) -> str:
    """Weights, cache and FLOPs at growing contexts, in rounded units."""
    model, line = _model_or_line(slug, "what it costs to run")
    if model is None:
        return line
    counts, weights = model.counts, 2 * model.counts.total
    rows = "".join(
        row(
            [
                (_context_cell(c, model), True),
                (numbers.decimal_bytes(weights), True),
                (numbers.decimal_bytes(counts.cache_bytes(c)), True),
                (numbers.decimal_bytes(weights + counts.cache_bytes(c)), True),
                (numbers.flops(counts.decode_flops(c)), True),
                (numbers.flops(counts.prefill_flops(c)), True),
            ]
        )
        for c in contexts(model)
    )
    made = table(
        f"What {text(model.name)} costs for one text",
        [
            ("Context, tokens", True),
            ("Weights", True),
            ("KV cache", True),
            ("Together", True),
            ("One new token", True),
            ("The whole text", True),
        ],
        [f"<tbody>{rows}</tbody>"],
        f"Costs of {model.name}",
    )
    return block(
        made,
        conventions(
            "Weights and cache at 2 bytes an element, 1 GB = 10<sup>9</sup> bytes; activations are left out.",
            *FLOP_CONVENTIONS,
            _limit_line(model),
        ),
    )


# Notation


@cache
def notation_table() -> str:
    """The site's words for sizes: name, letter, meaning, config keys, paper symbols."""
    from .formulas import math

    used = _all_symbols()
    rows = []
    for s in notation.SYMBOLS:
        if s.name not in ("T", "S") and s.name not in used:
            continue
        papers = " ".join(math(p.strip()) for p in s.paper.split(",")) if s.paper else "–"
        keys = ", ".join(f"<code>{text(k)}</code>" for k in notation.config_keys(s.name)) or "–"
        rows.append(
            row(
                [
                    (tag("var", text(s.name)), False),
                    (f"<var>{text(s.letter)}</var>" if s.letter else "–", False),
                    (text(s.meaning), False),
                    (keys, False),
                    (papers, False),
                ]
            )
        )
    return table(
        "The names of sizes on this site",
        [
            ("Name", False),
            ("Letter", False),
            ("What it is", False),
            ("Keys in config.json", False),
            ("In papers", False),
        ],
        [f"<tbody>{''.join(rows)}</tbody>"],
        "Notation",
    )
