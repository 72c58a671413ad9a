"""Training: FLOPs per token next to the rule of 6 per parameter, memory with AdamW term by term."""

from __future__ import annotations

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.costs import Costs
from ..kit import disclosure, rounding
from ..kit.arguments import several, whole_number
from ..kit.context_limits import dagger
from ..kit.conventions import FLOP_CONVENTIONS, caveat
from ..kit.html import Html, Link, Row, block, conventions, html, number
from .cells import (
    CAUSAL,
    UNITS,
    beyond_note,
    beyond_note_of_model,
    bytes_cell,
    checked_context,
    context_or_usual,
    cost_table,
    model_costs,
    model_rows,
    sequences_text,
    signed_change,
)


def training_flops(models: object, context: int = 4096, link: Link | None = None) -> Html:
    """FLOPs of training on one token, next to 6 per parameter."""
    slugs, context = several(models, "models"), checked_context(context)

    def cells(model: Model, c: Costs) -> list:
        full, causal = (
            c.compute.training_flops_per_token(context),
            c.compute.training_flops_per_token(context, causal=True),
        )
        rule = 6 * c.counts.active
        return [
            rounding.flops(full),
            rounding.flops(causal),
            rounding.flops(rule),
            signed_change(int(causal) - rule, rule),
            rounding.flops(6 * c.counts.total) if c.counts.total != c.counts.active else "the same",
        ]

    columns = [
        "Model",
        number(html("Per token,<br>scores in full")),
        number("causal"),
        number(html("6 × active<br>parameters")),
        number(html("causal vs.<br>the rule")),
        number(html("6 × all<br>parameters")),
    ]
    return block(
        cost_table(
            f"Training FLOPs per token, sequences of {context:,} tokens",
            columns,
            model_rows(slugs, 5, cells, link, context),
            f"Training FLOPs per token, sequences of {context:,} tokens",
        ),
        conventions(
            html(
                "Forward and backward pass; the backward pass costs twice as much as the forward pass. Logits of every "
                "token. No recomputation."
            ),
            CAUSAL,
            "Latent attention with keys and values expanded per head, as in training.",
            FLOP_CONVENTIONS[0],
            beyond_note(slugs, [context]),
            caveat(slugs),
        ),
    )


TRAINED = {
    "weights": html("2 bytes each"),
    "gradients": html("2 bytes each"),
    "master weights": html("4 bytes each: 16 bits are too coarse for a step"),
    "momentum": html("4 bytes each: AdamW’s mean of the gradients"),
    "variance": html("4 bytes each: AdamW’s mean of their squares"),
}
KEPT_FOR_TRAINING = (
    ("Activations, all kept", {}, html("the input of each step, and the attention weight of every (query, key) pair")),
    (
        "without attention weights",
        {"pairs": False},
        "attention in blocks, whose weights the backward pass computes again",
    ),
    (
        "recomputed, layer by layer",
        {"recompute": True},
        html(
            "the input of each layer, and the activations of one layer at a time; the forward pass runs twice, "
            "a third more FLOPs"
        ),
    ),
)


@memoized
@disclosure.view("the memory to train it")
def training_memory(model: Model, context: int | None = None, batch: int = 1) -> Html:
    """Training memory with AdamW in mixed precision, term by term, with activations kept in three ways."""
    costs, context, batch = model_costs(model), context_or_usual(model, context), whole_number(batch, "batch")
    terms = costs.training.training_bytes(context, batch)
    n, states = rounding.grouped(costs.counts.total), sum(terms[name] for name in TRAINED)
    rows: list[Row | list] = [
        [name[:1].upper() + name[1:], rounding.decimal_bytes(terms[name]), html("{} elements, {}", n, each)]
        for name, each in TRAINED.items()
    ]
    rows.append(Row(["Model and optimizer", rounding.decimal_bytes(states), "16 bytes per parameter"], "total"))
    for title, how, what in KEPT_FOR_TRAINING:
        size = costs.training.activation_bytes(context, batch, **how)
        rows += [
            Row([title, rounding.decimal_bytes(size), what], "ep-step" if how else None),
            Row(["Total", bytes_cell(states + size), ""], "total"),
        ]
    return block(
        cost_table(
            html("Memory to train {} on {}", model.name, sequences_text(batch, context, dagger(context, model))),
            ["Term", number("Memory"), "Meaning"],
            rows,
            f"Training memory of {model.name}",
        ),
        conventions(
            html(
                "Mixed precision with AdamW; activations at 2 bytes per element, the logits of all "
                "tokens at 4; no dropout, one device. {}",
                UNITS,
            ),
            beyond_note_of_model(model, context),
            caveat([model.slug]),
        ),
    )
