"""FLOPs of decode and prefill: the formula, at growing contexts, part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from ...cache.memory import memoized
from ...catalogue.folded import in_folds
from ...catalogue.models import Model
from ...counting.compute import PartFlops
from ...engine.dims import IN_FIRST_STEP, Atom, Poly, latex_name
from ..kit import disclosure, rounding
from ..kit.context_limits import contexts, dagger, limit_note
from ..kit.conventions import FLOP_CONVENTIONS, caveat
from ..kit.equations import display_math, total_latex
from ..kit.html import Html, Row, block, conventions, html, number, table, terms_beside, text
from ..kit.shapes import var
from ..words import descriptions
from .cells import CAUSAL, beyond_note_of_model, context_or_usual, cost_table, model_costs


def decode_poly(model: Model) -> Poly:
    """FLOPs of one new token at a context of S; with an encoder, of a token after the first."""
    fixed: dict[Atom, Poly] = {"T": Poly.of(1), IN_FIRST_STEP: Poly.of(0)}
    return in_folds(model.counts.flops, model.trace, model.drawn.folds).replace(fixed.get).folded()


@memoized
@disclosure.view("its FLOPs")
def flops(model: Model) -> Html:
    """FLOPs of decoding one token and of prefill: the formula, and figures at growing contexts."""
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
    columns = ["Context, tokens", "Decode, one token", "rounded", "Prefill", "rounded"]
    as_table = table(f"FLOPs of {model.name}", map(number, columns), rows, name=f"FLOPs of {model.name}")
    formula = html("<p>One new token that attends to {} tokens:</p>", var("S")) + display_math(
        total_latex(decode_poly(model), latex_name)
    )
    more = "Layers of a kind may read more earlier results than the first of them: a term with a plain number has it."
    notes = *FLOP_CONVENTIONS, more if model.drawn.folds else "", limit_note(model), caveat([model.slug])
    return block(formula, as_table, conventions(*notes))


@memoized
@disclosure.view("its FLOPs")
def flops_table(model: Model, context: int | None = None) -> Html:
    """FLOPs part by part: decode of one token at a context, and prefill of that length, in full and with the causal
    half."""
    costs, context = model_costs(model), context_or_usual(model, context)
    one, whole = (_alike_together(costs.compute.flops_by_part(new, context), model) for new in (1, context))
    n_kinds = len({p.kind for p in whole if p.layers})
    decode, full, causal = sum(p.total for p in one), sum(p.total for p in whole), sum(p.causal for p in whole)
    rows = []
    for a, b in zip(one, whole):
        title = text(descriptions.group(b.node))
        terms = terms_beside(descriptions.Words(title, term=descriptions.of_step(b.node).term).terms)
        lines = [(title + terms, a.total, b.total, b.causal)]
        if b.pairs and b.pairs != b.total:
            split = (
                (
                    html("{}, multiplications by weights{}", title, terms),
                    a.total - a.pairs,
                    b.total - b.pairs,
                    b.total - b.pairs,
                ),
                (html("{}, scores and weighted sums{}", title, terms), a.pairs, b.pairs, b.causal_pairs),
            )
            lines = [line for line in split if line[1] or line[2]]
        rows += [
            [
                said,
                _layers(b.kind, b.layers, n_kinds),
                rounding.flops(of_one),
                rounding.percent(of_one, decode),
                rounding.flops(of_all),
                rounding.flops(of_seen),
                rounding.percent(of_seen, causal),
            ]
            for said, of_one, of_all, of_seen in lines
        ]
    sums = ["Total", "", rounding.flops(decode), "", rounding.flops(full), rounding.flops(causal), ""]
    notes = [*FLOP_CONVENTIONS, CAUSAL, beyond_note_of_model(model, context), caveat([model.slug])]
    if costs.cache.has_latents:
        notes.append(
            html(
                "Latent attention is counted with the heads’ matrices applied to the queries. With keys and values "
                "expanded per head, prefill takes {} (causal) and one new token {}.",
                rounding.flops(costs.compute.expanded_flops(context, context, causal=True)),
                rounding.flops(costs.compute.expanded_flops(1, context)),
            )
        )
    return block(
        cost_table(
            html("FLOPs of {} at {:,}{} tokens", model.name, context, dagger(context, model)),
            [
                "Part",
                "Where",
                number("Decode, one token"),
                number("Share"),
                number(html("Prefill,<br>in full")),
                number("causal"),
                number("Share"),
            ],
            [*rows, Row(sums, "total")],
            f"FLOPs of {model.name} by part",
        ),
        conventions(*notes),
    )


def _alike_together(parts: Sequence[PartFlops], model: Model) -> list[PartFlops]:
    """The parts of similar layers in one row, each merged with the corresponding part of the others."""
    names = {node.layers: node.kind for node in model.trace.root.children}
    drawn: dict[object, object] = {names[layers]: fold.name for fold in model.drawn.folds for layers in fold.kinds}
    together: dict[tuple[object, int], PartFlops] = {}
    place: Counter[object] = Counter()
    for part in parts:
        key = drawn.get(part.kind, part.kind), place[part.kind]
        place[part.kind] += 1
        before = together.get(key)
        together[key] = replace(part, kind=key[0]) if before is None else _sum(before, part)
    return list(together.values())


def _sum(a: PartFlops, b: PartFlops) -> PartFlops:
    """The same part for more layers."""
    return replace(
        a,
        layers=(a.layers or 0) + (b.layers or 0),
        total=a.total + b.total,
        pairs=a.pairs + b.pairs,
        causal_pairs=a.causal_pairs + b.causal_pairs,
    )


def _layers(kind: object, layers: int | None, n_kinds: int) -> str:
    """`58 layers: mixture of experts`."""
    if layers is None:
        return ""
    said = f"{layers} layer{'s' if layers > 1 else ''}"
    return f"{said}: {descriptions.of_kind(kind)}" if n_kinds > 1 else said
