"""A model's tensors to the exact total, part by part, and its kinds of layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from ...cache.memory import memoized
from ...catalogue.independent import comparison
from ...catalogue.models import Model
from ...counting import design
from ...counting.parts import HEAD, INPUT_TABLES, Group
from ...engine.dims import Dim
from ...engine.tensors import Weight
from ..kit import disclosure, rounding
from ..kit.html import (
    Cell,
    Html,
    Row,
    block,
    code,
    conventions,
    heading,
    html,
    made,
    number,
    small,
    table,
    tag,
    terms_beside,
    text,
)
from ..kit.shapes import in_numbers, in_symbols, tensor_name
from ..trace.layers import each_run, layer_range, layers_by_kind, what_alike_layers_read
from ..trace.operations import words_of_weights
from ..trace.parts import expert_counts, group_id, group_title, groups
from ..words import descriptions


def copies(weight: Weight) -> str:
    """The number of tensors in the file that a row represents: `32`, `58 × 256`."""
    layers = int(weight.layer_count) if weight.layers is not None else 1
    members = int(weight.members) if weight.members is not None else 1
    return " × ".join(rounding.grouped(n) for n in (layers, members) if n != 1) or "1"


@memoized
@disclosure.view("its parameter table")
def parameter_table(model: Model) -> Html:
    """Every tensor of the checkpoint with its shape and count, grouped by part, to the exact total."""
    model = model.drawn
    counts = model.counts
    is_stacked = any(w.members is not None for w in counts.weights)
    return block(
        table(
            f"Every tensor of {model.name}, in the order of the forward pass",
            ["Tensor", number("Parameters"), number("Share"), "Shape", number("Per copy"), number("Copies")],
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
            "A tied embedding counts once." if counts.is_tied else "",
            html("Shapes are those of the file: a matrix may be stored as [in, out] or [out, in]."),
        ),
    )


def _of_group(group: Group, model: Model) -> Iterable[Row | list]:
    """The rows of a part: its tensors, and their sum if there are several."""
    sizes, total, words = model.counts.values(), model.counts.total, words_of_weights(model)
    yield heading(group_title(group, model), 6, group_id(group, model))
    experts = _experts(group)
    for w in group.weights:
        if w.routed is not None:
            yield from experts
            experts = []
        anchor = tensor_anchor(w)
        permalink = tag("a", "¶", cls="headerlink", href=f"#{anchor}", title="Link to this tensor")
        share = rounding.percent(int(w.count), total)
        said = words.get(w) or descriptions.of_tensor(w.name)
        yield Row(_tensor(w, sizes, share, _with_words(w, said, permalink)), id=anchor)
    if len(group.weights) > 1:
        yield _sum_row(html("{}, total", group.title), group.count, total, "subtotal")


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


def _with_words(w: Weight, said: descriptions.Words, permalink: Html) -> Html:
    """A tensor's name, as a link target, and below it its purpose in plain words and the field's term."""
    return made(f"{tensor_name(w.name)}{permalink}<br>{_purpose(said.title, said.terms)}")


@lru_cache(maxsize=2048)
def _purpose(title: str, terms: tuple[str, ...]) -> Html:
    return small(text(title) + terms_beside(terms))


def _to_the_total(model: Model) -> Iterable[Row | list]:
    """The rows below the parts: the tied head, the sum, and the other contents of the file."""
    counts, sizes, total = model.counts, model.counts.values(), model.counts.total
    if counts.is_tied:
        [tied, *_] = _tied(model)
        yield heading("Head", 6)
        yield [html("same tensor as {}", tensor_name(tied.name)), "0", "", _both(tied.shape, sizes), "", ""]
    yield _sum_row("Total parameters", total, total, "total")
    published = model.published
    exact = published if published and published.exact else None
    held = exact.parameters if exact else model.held()
    if held == total:
        return
    for w in counts.buffers:
        yield _tensor(w, sizes, "", html("{} (buffer, not trained)", tensor_name(w.name)))
    for extra in exact.extra if exact else ():
        yield _sum_row(extra.name, extra.count, 0)
    counted: Html | str = "Total parameters and buffers"
    if exact:
        counted = html("As published: {}", exact.source)
    yield _sum_row(counted, held, 0, "total")


def _experts(group: Group) -> list[Row]:
    """A line for the routed experts of a part: experts × one expert; empty if it has none."""
    experts = expert_counts(group.weights)
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
    return made(f"{in_symbols(shape)}<br>{in_numbers(shape, sizes)}")


def tensor_anchor(w: Weight) -> str:
    """The anchor of a tensor's row in its table: the name of the first of its copies, which no other row has."""
    return next(w.names())


def names_line(model: Model) -> Html:
    """Whether the tensor names were compared with the published file's."""
    if model.preset is None:
        return html("Tensor names are those of transformers for this architecture; no file was compared.")
    if model.names_verified:
        return html("Names and shapes were compared with the published file’s, tensor by tensor.")
    if model.preset.sources.names == "own":
        return html("The names are those of the architecture’s own module; no library has it.")
    if model.preset.hub is None:
        return html(
            "No file with these weights was published: the names are those of the same architecture’s published files."
        )
    if model.model_type in comparison().absent:
        return html("The names were not compared with the published file’s.")
    return html("Names are those of transformers; they were not compared with the published file’s.")


def _tied(model: Model) -> list[Weight]:
    nodes = model.trace.root.children
    inputs = {w for n in nodes if n.role is INPUT_TABLES[0] for w in n.all_weights()}
    return [w for n in nodes if n.role is HEAD for w in n.all_weights() if w in inputs]


def _sum_row(title: object, count: int, whole: int, cls: str | None = None) -> Row:
    share = rounding.percent(count, whole) if whole else ""
    return Row([title, rounding.grouped(count), share, Cell("", 3)], cls)


@memoized
@disclosure.view("the kinds of its layers")
def layer_table(model: Model) -> Html:
    """Each kind of layer of a model: its layers, their number, and their parameters."""
    rows = []
    for node in layers_by_kind(model):
        count = sum(int(w.count) for w in model.drawn.counts.weights if w.layers == node.layers)
        layers = node.layers or ()
        n, where = len(layers), layer_range(layers)
        if "…" in where:
            listed = each_run(layers) if what_alike_layers_read(node, model) else map(str, layers)
            where = "layers " + ", ".join(listed)
        rows.append([descriptions.of_kind(node.kind), where, n, rounding.grouped(count // n), rounding.grouped(count)])
    return table(
        f"The {design.n_layers(model.counts)} layers of {model.name}, by kind",
        ["Kind", "Layers", number("Number"), number("Parameters per layer"), number("Total")],
        rows,
        name=f"Kinds of layers of {model.name}",
    )
