"""Tables: a model's tensors, its figures beside the published ones, its costs, several models side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from ..catalogue import presets
from ..catalogue.presets import Model
from ..counting.parts import HEAD, INPUT_TABLES, Group
from ..dependencies import remembered
from ..engine.architectures import architectures
from ..engine.architectures.config import fields_of
from ..engine.dims import IN_FIRST_STEP, Atom, Dim, Poly, latex_name
from ..engine.errors import Problem
from ..engine.steps import Role
from ..engine.tensors import Weight
from . import disclosed, headlines, notation, rounding, values, words
from .equations import math, on_its_own, total_latex
from .html import (
    Cell,
    Html,
    Link,
    Row,
    beside,
    block,
    code,
    conventions,
    heading,
    html,
    joined,
    linked,
    number,
    small,
    table,
    tag,
    text,
)
from .layers import has_fixed_state, kinds, layer_range, n_layers
from .operations import words_of_weights
from .parts import experts_of, group_id, group_title, groups, is_sparse
from .shapes import in_numbers, in_symbols, var

CONTEXTS = tuple(2**k for k in range(10, 18))


def copies(weight: Weight) -> str:
    """How many tensors of the file a row stands for: `32`, `58 × 256`."""
    layers = int(weight.layer_count) if weight.layers is not None else 1
    members = int(weight.members) if weight.members is not None else 1
    return " × ".join(rounding.grouped(n) for n in (layers, members) if n != 1) or "1"


@remembered
@disclosed.view("its parameter table")
def parameter_table(model: Model) -> Html:
    """Every tensor of the checkpoint with its shape and count, grouped by part, to the exact total."""
    counts = model.counts
    is_stacked = any(w.members is not None for w in counts.weights)
    return block(
        table(
            f"Every tensor of {model.name}, in the order of the forward pass",
            ["Tensor", number("Parameters"), number("Share"), "Shape", number("One copy"), number("Copies")],
            *(_of_group(group, model) for group in groups(model)),
            _to_the_total(model),
            name=f"Parameter table of {model.name}",
            cls="ep-table ep-tensors",
        ),
        conventions(
            code("{i}")
            + html(" stands for the layer")
            + (html(" and {} for the expert", code("{e}")) if is_stacked else "")
            + html("."),
            names_line(model),
            "A tied table counts once." if counts.is_tied else "",
            html(
                "Shapes are those of the file: a matrix that a vector is multiplied by may be stored either way round."
            ),
        ),
    )


def _of_group(group: Group, model: Model) -> Iterable[Row | list]:
    """The rows of a part: its tensors, and their sum where there are several."""
    sizes, total = model.counts.values(), model.counts.total
    yield heading(group_title(group, model), 6, group_id(group, model))
    experts = _experts(group)
    for w in group.weights:
        if w.routed is not None:
            yield from experts
            experts = []
        anchor = tensor_anchor(w)
        permalink = tag("a", "¶", cls="headerlink", href=f"#{anchor}", title="Link to this tensor")
        share = rounding.percent(int(w.count), total)
        yield Row(_tensor(w, sizes, share, _with_words(w, model, permalink)), id=anchor)
    if len(group.weights) > 1:
        yield _sum_row(html("{}, together", group.title), group.count, total, "subtotal")


def _tensor(w: Weight, sizes: Mapping[str, int], share: str, title: Html | None = None) -> list:
    """A tensor's name, numbers in all copies and their share, shape, and numbers in one copy."""
    one = int(w.count) // int(w.copies)
    return [
        title or tensor_name(w.name),
        rounding.grouped(int(w.count)),
        share,
        _both(w.shape, sizes),
        rounding.grouped(one),
        copies(w),
    ]


def _with_words(w: Weight, model: Model, permalink: Html) -> Html:
    """A tensor's name, which can be linked to, and below it what it is for, plainly and in the field's term."""
    said = words_of_weights(model).get(w) or words.of_tensor(w.name)
    return html("{}{}<br>{}", tensor_name(w.name), permalink, small(text(said.title) + beside(said.terms)))


def _to_the_total(model: Model) -> Iterable[Row | list]:
    """The rows below the parts: the tied head, the sum, and what the file holds besides."""
    counts, sizes, total = model.counts, model.counts.values(), model.counts.total
    if counts.is_tied:
        [tied, *_] = _tied(model)
        yield heading("Head", 6)
        yield [html("same tensor as {}", tensor_name(tied.name)), "0", "", _both(tied.shape, sizes), "", ""]
    yield _sum_row("Parameters in all", total, total, "total")
    published = model.preset.published if model.preset else None
    exact = published if published and published.exact else None
    held = exact.parameters if exact else model.held()
    if held == total:
        return
    for w in counts.buffers:
        yield _tensor(w, sizes, "", html("{} (buffer, not trained)", tensor_name(w.name)))
    for extra in exact.extra if exact else ():
        yield _sum_row(extra.name, extra.count, 0)
    counted: Html | str = "Parameters and buffers in all"
    if exact:
        counted = html("As published: {}", exact.source)
    yield _sum_row(counted, held, 0, "total")


def _experts(group: Group) -> list[Row]:
    """A line for the routed experts of a part: experts × one expert; none where it has none."""
    experts = experts_of(group.weights)
    if experts is None:
        return []
    held, used = experts
    layer = sum(int(w.count) // int(w.layer_count) for w in group.weights if w.routed is not None)
    n = len(group.layers or (0,))
    said = html(
        "{:,} experts × {:,} parameters = {:,} in each {}; a token uses {:,}",
        held,
        layer // held,
        layer,
        f"of the {n} layers" if n > 1 else "layer",
        used,
    )
    return [Row([Cell(said, 6)], "ep-experts")]


def _both(shape: tuple[Dim, ...], sizes: Mapping[str, int]) -> Html:
    return html("{}<br>{}", in_symbols(shape), in_numbers(shape, sizes))


def tensor_name(name: str) -> Html:
    """A tensor's name, which may break after each dot."""
    return code(text(name).replace(".", html(".<wbr>")))


def tensor_anchor(w: Weight) -> str:
    """Where a tensor's row is in its table: the name of the first of its copies, which no other row has."""
    return next(w.names())


def names_line(model: Model) -> Html:
    """Whether the tensor names were compared with the published file's."""
    if model.preset is None:
        return html("Tensor names are those of transformers for this architecture; no file was compared.")
    if model.names_verified:
        return html("Names and shapes were compared with the published file’s, tensor by tensor.")
    if model.preset.hub is None:
        return html(
            "No file with these weights was published: the names are those of the same architecture’s published files."
        )
    return html("Names are those of transformers; they were not compared with the published file’s.")


def _tied(model: Model) -> list[Weight]:
    nodes = model.trace.root.children
    inputs = {w for n in nodes if n.role is INPUT_TABLES[0] for w in n.all_weights()}
    return [w for n in nodes if n.role is HEAD for w in n.all_weights() if w in inputs]


def _sum_row(title: object, count: int, whole: int, cls: str | None = None) -> Row:
    share = rounding.percent(count, whole) if whole else ""
    return Row([title, rounding.grouped(count), share, Cell("", 3)], cls)


# Kinds of layers


@remembered
@disclosed.view("the kinds of its layers")
def layer_table(model: Model) -> Html:
    """Each kind of layer of a model: which layers are of it, how many, and their parameters."""
    rows = []
    for node in kinds(model):
        count = sum(int(w.count) for w in model.counts.weights if w.layers == node.layers)
        layers = node.layers or ()
        n, where = len(layers), layer_range(layers)
        if "…" in where:
            where = "layers " + ", ".join(map(str, layers))
        rows.append([words.of_kind(node.kind), where, n, rounding.grouped(count // n), rounding.grouped(count)])
    return table(
        f"The {n_layers(model)} layers of {model.name}, by kind",
        ["Kind", "Which", number("How many"), number("Parameters of one"), number("Together")],
        rows,
        name=f"Kinds of layers of {model.name}",
    )


# Which number?


@remembered
@disclosed.view("every count of it")
def which_number(model: Model) -> Html:
    """The counts that are all called "the size", each difference explained down to zero."""
    counts, preset, published = model.counts, model.preset, model.published
    figures = [published, *published.other] if published else []
    total = _result("Unique trainable parameters", counts.total)

    why = "each tensor once, the tied table too" if counts.is_tied else "each tensor once"
    start = [_result("Unique trainable parameters", counts.total, why)]
    if preset and preset.headline:
        start.insert(0, Row(["The maker’s headline", preset.headline, headlines.headline(model, preset.headline)]))
    sections = [("The model", start)]
    if counts.embedding:
        tables = [_step(tensor_name(w.name), -int(w.count), use) for w, use in _tables(model)]
        rest = _result(
            "Non-embedding",
            counts.non_embedding,
            "what the scaling laws of Kaplan et al. count; Chinchilla’s count all",
        )
        sections.append(("Without the tables at both ends", [total, *tables, rest]))
    if is_sparse(model):
        sections.append(("What one token uses", _active(model, total)))
    alike = [f for f in figures if f.exact and f.parameters == counts.total and not f.extra]
    if alike:
        sections.append(
            (
                "Counted alike elsewhere",
                [_result("Published", f.parameters, html("{}; the same number", f.source)) for f in alike],
            )
        )
    sections += [(f.source, _published(model, f, total)) for f in figures if f not in alike]
    return block(
        table(
            html("Which number is “the size” of {}?", model.name),
            ["Which number", number("Count"), "What it means"],
            *([heading(title, 3), *rows] for title, rows in sections),
            name=f"The counts of {model.name}",
            cls="ep-table ep-which",
        ),
        conventions(
            _contradiction(model),
            html("Lines that start with + or − lead from the count above them to the one below."),
        ),
    )


def _result(title: str, n: int, why: object = "") -> Row:
    return Row([title, rounding.grouped(n), why], "total")


def _step(title: object, n: int, why: object) -> Row:
    return Row([title, html("+" if n > 0 else "") + rounding.grouped(n), why], "ep-step")


def _active(model: Model, total: Row) -> list[Row]:
    """From the total to what a token uses, by both conventions, and what the maker gives."""
    counts, published = model.counts, model.published
    idle: dict[tuple[str, int, int], list[Weight]] = {}
    for w in counts.weights:
        if w.routed is not None and int(w.active) != int(w.count):
            held, used = map(int, w.routed)
            idle.setdefault((w.name, held, used), []).append(w)  # of every kind of layer
    rows = [total]
    for (name, held, used), weights in idle.items():
        n = sum(int(w.layer_count) for w in weights)
        left_out = sum(int(w.active) - int(w.count) for w in weights)
        layers = f"in {n:,} {'layer' if n == 1 else 'layers'}"
        why = f"{held - used:,} of {held:,} experts that a token does not choose, {layers}"
        rows.append(_step(tensor_name(name), left_out, why))
    multiplied = html("what one token uses; tables and head in full")
    rows.append(_result("Active per token", counts.active, multiplied))
    excluding = counts.active_excluding_input_embedding
    if excluding != counts.active:
        rows += [
            _step("the input table", excluding - counts.active, "a look-up of one row"),
            _result("Active without the input table", excluding, "another convention in use"),
        ]
    if published and published.active:
        source = html("; {}", published.active_source) if published.active_source else ""
        rows.append(
            Row(
                [
                    "The maker’s figure",
                    published.active,
                    headlines.given_by(published.active, headlines.active(model)) + source,
                ]
            )
        )
    return rows


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
    return [(w, " and ".join(dict.fromkeys(what))) for w, what in uses.items()]


def _published(model: Model, published: presets.Published, total: Row) -> list[Row]:
    """From the total to a published figure, each difference by name and count."""
    counts = model.counts
    if not published.exact:
        n = published.parameters
        why = html("the count {}; nothing exact can be held to a rounded figure", headlines.off(counts.total, n))
        return [total, _step("rounded there", n - counts.total, why), _result("Published, rounded", n)]
    rows, explained = [total], counts.total
    for name in dict.fromkeys(w.name for w in counts.buffers):
        n = sum(int(w.count) for w in counts.buffers if w.name == name)
        rows.append(_step(tensor_name(name), n, html("a buffer: stored, not trained")))
        explained += n
    for extra in published.extra:
        why = "counted there, no part of this forward pass" if extra.count > 0 else "not counted there"
        rows.append(_step(extra.name, extra.count, why))
        explained += extra.count
    rest = html("unexplained: {}", rounding.grouped(published.parameters - explained))
    return [*rows, _result("Published", published.parameters, rest)]


def _contradiction(model: Model) -> Html | str:
    """A config whose heads together are not as wide as the model: a design, or a slip of a paper."""
    sizes = model.counts.values()
    if not {"n_heads", "d_head", "d_model"} <= sizes.keys():
        return ""
    together = sizes["n_heads"] * sizes["d_head"]
    if together == sizes["d_model"]:
        return ""
    product = html(
        "{} × {} = {:,} × {:,} = {:,}", var("n_heads"), var("d_head"), sizes["n_heads"], sizes["d_head"], together
    )
    width = html("{} = {:,}", var("d_model"), sizes["d_model"])
    if any("d_head" in d.symbols for w in model.counts.weights for d in w.shape):
        return html(
            "The heads together are not as wide as the model: {}, and {}. "
            "The projections change the width on the way in and out.",
            product,
            width,
        )
    return html(
        "The source contradicts itself: {}, and {} (a difference of {}). Attention is taken to be as wide as {} here.",
        product,
        width,
        rounding.grouped(together - sizes["d_model"]),
        var("d_model"),
    )


# Comparison


def comparison(
    slugs: Iterable[str],
    columns: Iterable[str | tuple[str, str]],
    context: int | None = None,
    link: Link | None = None,
) -> Html:
    """Models × chosen figures; each model's name leads to its page."""
    slugs, labelled = tuple(_listed(slugs, "models")), [_labelled(c) for c in _listed(columns, "columns")]
    rows = [
        [
            linked(presets.preset(slug).name, slug, link),
            *(_figure(slug, name, context) for name, _ in labelled),
        ]
        for slug in slugs
    ]
    used, known = {n for c, _ in labelled for n in _names(c)}, {m.slug: m for m in disclosed.models(slugs)}
    at_context = f" at {context:,} tokens" if context and any(map(values.depends_on_context, used)) else ""
    notes = []
    if any("cache" in n for n in used):
        notes.append("KV cache at 2 bytes an element.")
    if any("flops" in n for n in used):
        notes.append("A multiply-add is 2 FLOPs.")
    if "prefill_flops" in used:
        notes.append("Of a whole text the scores of all pairs count, also those that are hidden.")
    if "stored" in used:
        notes.append(text("Numbers in the file: the hub’s total for the model’s own file, scales included."))
        if any(m.is_stored_computed for m in known.values()):
            notes.append(
                html("{} computed: no total of its own file is known, so it is parameters and buffers.", _COMPUTED)
            )
    latent = [m.name for m in known.values() if "kv_lora_rank" in m.counts.values()] if "n_kv_heads" in used else []
    if latent:
        notes.append(
            html(
                "“–” for {}: {} {}, from which the keys and values of all heads are made.",
                var("n_kv_heads"),
                _and(latent),
                "keeps latents" if len(latent) == 1 else "keep latents",
            )
        )
    past = [m for m in known.values() if _is_past(context, m)] if context and at_context else []
    if past:
        ends = [html("{} {:,}{}", m.name, *_end(m)) for m in past]
        notes.append(html("† beyond the tokens that the config allows: {}.", joined(ends, ", ")))
    if any("cache" in n or "flops" in n for n in used):
        notes.append(caveat(slugs))
    if len(known) < len(set(slugs)):
        notes.append(html("“{}”: the maker has published no sizes, and guesses are left out.", disclosed.UNDISCLOSED))
    as_table = table(
        f"{len(slugs)} model{'s side by side' if len(slugs) > 1 else ''}{at_context}",
        ["Model", *(number(label) if name not in values.ABOUT else label for name, label in labelled)],
        rows,
        name="Comparison of models",
    )
    return block(as_table, conventions(*notes)) if notes else as_table


def _end(model: Model) -> tuple[int | None, Html]:
    end, is_hard = limit(model)
    return end, html(" (position table)" if is_hard else "")


def _listed(given: object, name: str) -> Iterable[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise Problem(f"{name} = {given!r}: expected a list", f'write {name}=["…", "…"]')
    return given


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _labelled(column: object) -> tuple[str, Html]:
    """A column's figure, and what its head says: the label given with it, or the figure itself."""
    match column:
        case str():
            spelt = _spelt(column)
            return column, spelt[:1].upper() + spelt[1:]
        case (str(label), str(name)):
            return name, text(label)
    raise Problem(
        f"columns holds {column!r}: expected a figure, or a label with it",
        'write "d_ff / d_model", or ("times as wide", "d_ff / d_model")',
    )


SIGNS = {"*": "·", "/": " / ", "//": " / ", "-": " − ", "+": " + "}


def _spelt(source: str) -> Html:
    """A figure or a formula of figures as people write it: sizes by name, counts in words, `·` for `*`."""

    def spell(m: re.Match) -> str:
        if m["name"]:
            return var(m[0]) if notation.known(m[0]) or m[0] in _all_symbols() else text(values.heading(m[0]))
        return tag("sup", m["power"]) if m["power"] else SIGNS.get(m[0].strip()) or text(m[0])

    return Html(re.sub(r"(?P<name>[A-Za-z_]\w*)|\s*\*\*\s*(?P<power>\d+)|\s*(?://|[*/+-])\s*|.", spell, source))


def _names(source: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*", source)


def _figure(slug: str, name: str, context: int | None) -> Html | str:
    """A figure of a model, as a cell."""
    try:
        shown = values.value(slug, name, context=context)
    except Problem:
        if name in values.PUBLISHED or name.isidentifier() and (notation.known(name) or name in _all_symbols()):
            return "–"
        raise
    model = disclosed.model(slug)
    if model is None:
        return shown
    is_past = any(map(values.depends_on_context, _names(name))) and context is not None and _is_past(context, model)
    is_computed = "stored" in _names(name) and model.is_stored_computed
    marks = [mark for mark, applies in ((_PAST, is_past), (_COMPUTED, is_computed)) if applies]
    return html("{} {}", joined(marks), shown) if marks else shown


@lru_cache(maxsize=1)
def _all_symbols() -> frozenset[str]:
    """Every size that some architecture's config has."""
    return frozenset(k.field for a in architectures().values() for k in fields_of(a.config) if k.is_size)


# Costs


def limit(model: Model) -> tuple[int | None, bool]:
    """The longest context: (tokens, whether a learned position table ends there); None where nothing says."""
    return model.longest_context


def end_of_positions(model: Model) -> int | None:
    """Where a learned position table ends: what lies behind it the model cannot compute; None for any other model."""
    end, is_hard = limit(model)
    return end if is_hard else None


def contexts(model: Model) -> list[int]:
    """1K to 128K tokens; where a learned position table ends, up to there."""
    end = end_of_positions(model)
    return list(CONTEXTS) if end is None else [c for c in CONTEXTS if c <= end] or [end]


_COMPUTED = html('<span class="ep-mark" title="computed, not published">‡</span>')
_PAST = html('<span class="ep-mark" title="beyond the context that the config allows">†</span>')


def _is_past(context: int, model: Model) -> bool:
    return model.is_beyond(context)


def dagger(context: int, model: Model) -> Html:
    """What stands behind a context that is beyond the model's; nothing behind any other."""
    return html(" {}", _PAST) if _is_past(context, model) else Html()


def _limit_line(model: Model) -> Html | str:
    end, is_hard = limit(model)
    if end is None:
        return ""
    if is_hard:
        return html("The position table ends at {:,} tokens.", end)
    return html("† beyond the {:,} tokens of the config.", end) if end < CONTEXTS[-1] else ""


def decode_poly(model: Model) -> Poly:
    """FLOPs of one new token that sees S; where an encoder reads, of one after the first."""
    fixed: dict[Atom, Poly] = {"T": Poly.of(1), IN_FIRST_STEP: Poly.of(0)}
    return model.counts.flops.replace(fixed.get).folded()


def caveat(slugs: Iterable[str]) -> Html:
    """What the costs of these models leave out of account, as their presets say, each said once."""
    described = [m.preset for m in disclosed.models(slugs) if m.preset]
    return joined(map(text, dict.fromkeys(p.caveat for p in described if p.caveat)), " ")


def cache_poly(model: Model) -> Poly:
    """Elements of the cache after a step, of all layers together."""
    return sum((k.elements for k in model.counts.kept), Poly.of(0))


@remembered
@disclosed.view("its KV cache")
def kv_cache(model: Model) -> Html:
    """The KV cache: its formula and its size at growing contexts."""
    counts = model.counts
    rows = []
    for c in contexts(model):
        size = counts.cache_bytes(c)
        shown = rounding.grouped(size), rounding.binary_bytes(size), rounding.decimal_bytes(size)
        rows.append([html("{:,}{}", c, dagger(c, model)), *shown])
    as_table = table(
        f"KV cache of {model.name} for one text",
        [number("Context, tokens"), number("Bytes"), number("In GiB"), number("In GB")],
        rows,
        name=f"KV cache of {model.name}",
    )
    slope, index = counts.cache_bytes_per_token(), counts.index_bytes_per_token()
    uncapped = counts.cache_bytes_per_token_uncapped() + index
    kept = on_its_own(cache_poly(model).latex()) if counts.kept else text("none")
    formula = html("<p>Elements kept after {} tokens:</p>", var("S")) + kept
    added = html(
        "<p>One more token adds {:,} bytes{}{}.</p>",
        slope,
        html(" at long context ({:,} as long as no window is full)", uncapped) if uncapped != slope else "",
        f", of which {index:,} are keys of the indexer" if index else "",
    )
    is_fixed = any(k.item_bytes for k in counts.kept)
    return block(
        formula,
        added,
        as_table,
        conventions(
            html(
                "2 bytes an element{}; 1 GiB = 2<sup>30</sup> bytes, 1 GB = 10<sup>9</sup>.",
                ", fixed state at its own size" if is_fixed else "",
            ),
            "Windows hold the last tokens only, so bytes per token are not constant." if uncapped != slope else "",
            _limit_line(model),
            caveat([model.slug]),
        ),
    )


@remembered
@disclosed.view("its FLOPs")
def flops(model: Model) -> Html:
    """FLOPs of one new token and of reading a whole text: the formula and figures at growing contexts."""
    counts = model.counts
    rows = []
    for c in contexts(model):
        one, whole = counts.decode_flops(c), counts.prefill_flops(c)
        rows.append(
            [
                html("{:,}{}", c, dagger(c, model)),
                rounding.grouped(one),
                rounding.flops(one),
                rounding.grouped(whole),
                rounding.flops(whole),
            ]
        )
    columns = ["Context, tokens", "One new token", "rounded", "The whole text", "rounded"]
    as_table = table(f"FLOPs of {model.name}", map(number, columns), rows, name=f"FLOPs of {model.name}")
    formula = html("<p>One new token that sees {}:</p>", var("S")) + on_its_own(
        total_latex(decode_poly(model), latex_name)
    )
    return block(formula, as_table, conventions(*FLOP_CONVENTIONS, _limit_line(model), caveat([model.slug])))


FLOP_CONVENTIONS = (
    html(
        "A multiply-add is 2 FLOPs; contractions and the multiply-adds of recurrences and "
        "convolutions count, a look-up is 0, other element-wise work is left out."
    ),
    html("Attention scores in full, not only their causal half; logits of the last token only."),
)


@remembered
@disclosed.view("what it costs to run")
def costs(model: Model) -> Html:
    """Weights, cache and FLOPs at growing contexts, in rounded units."""
    counts, weights = model.counts, 2 * model.counts.total
    rows = [
        [
            html("{:,}{}", c, dagger(c, model)),
            rounding.decimal_bytes(weights),
            rounding.decimal_bytes(counts.cache_bytes(c)),
            rounding.decimal_bytes(weights + counts.cache_bytes(c)),
            rounding.flops(counts.decode_flops(c)),
            rounding.flops(counts.prefill_flops(c)),
        ]
        for c in contexts(model)
    ]
    columns = ["Context, tokens", "Weights", "KV cache", "Together", "One new token", "The whole text"]
    return block(
        table(f"What {model.name} costs for one text", map(number, columns), rows, name=f"Costs of {model.name}"),
        conventions(
            html(
                "Weights and cache at 2 bytes an element{}, 1 GB = 10<sup>9</sup> bytes; activations are left out.",
                ", fixed states at their own size" if has_fixed_state(model) else "",
            ),
            *FLOP_CONVENTIONS,
            _limit_line(model),
            caveat([model.slug]),
        ),
    )


# Notation


@cache
def notation_table() -> Html:
    """The site's words for sizes: name, letter, meaning, config keys, paper symbols."""
    used = _all_symbols() | {"T", "S"}
    rows = [
        [
            tag("var", s.name),
            tag("var", s.letter) if s.letter else "–",
            s.meaning,
            joined(map(code, notation.config_keys(s.name)), ", ") or "–",
            joined((math(p.strip()) for p in s.paper.split(",")), " ") if s.paper else "–",
        ]
        for s in notation.SYMBOLS
        if s.name in used
    ]
    return table(
        "The names of sizes on this site",
        ["Name", "Letter", "What it is", "Keys in config.json", "In papers"],
        rows,
        name="Notation",
    )


@cache
def terms_table() -> Html:
    """What the site calls a step or weight, plainly and in the field's terms, with the names of its tensors."""
    names: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    roles = ((role, said) for role, said in words.STEPS.items() if isinstance(role, Role))
    of_steps = [said._replace(term=role.term) for role, said in roles]
    for said in (*of_steps, *words.CALLS.values()):
        names.setdefault((said.title, said.terms), [])
    for name, said in words.WEIGHTS.items():
        names.setdefault((said.title, said.terms), []).append(name)
    rows = [
        [title, joined(terms, ", "), joined(map(tensor_name, tensors), ", ") or "–"]
        for (title, terms), tensors in names.items()
        if terms
    ]
    return table(
        "What this site says, and what the field says",
        ["On this site", "In papers and code", "Names of its tensors"],
        rows,
        name="Plain words and terms",
    )
