"""A model's modules for multi-token prediction: tensors, share of the model, cost of a draft."""

from __future__ import annotations

from ...catalogue.models import Model
from ...catalogue.predictions import AT, Prediction
from ..kit import disclosure, rounding
from ..kit.html import Html, block, conventions, html, number, tag
from ..kit.shapes import in_numbers, tensor_name
from .cells import cost_table

ONE_DRAFT = html(
    "A draft runs each module once. Its FLOPs include the LM head; its parameters do not include the embedding and the "
    "head of the model. The model’s own figures leave the modules out."
)


@disclosure.view("its modules for multi-token prediction")
def prediction_table(model: Model) -> Html:
    """A model's modules for multi-token prediction: each tensor, their share, and the cost of a draft."""
    found = model.prediction
    if found is None:
        return tag("p", "It predicts one token, without further modules.")
    counts = found.counts
    sizes = counts.values()
    rows = [
        [
            tensor_name(w.name),
            in_numbers(w.shape, sizes),
            f"× {int(w.copies):,}" if int(w.copies) > 1 else "",
            rounding.grouped(int(w.count)),
        ]
        for w in counts.weights
    ]
    columns = "Tensor", "Shape", number("Copies"), number("Parameters")
    name = f"Multi-token prediction of {model.name}"
    return block(tag("p", draft(model, found)), cost_table(name, columns, rows, name), conventions(ONE_DRAFT))


def draft(model: Model, found: Prediction) -> Html:
    """The parameters, and the cost of a draft relative to a token of the model."""
    counts = found.counts
    return html(
        "{:,} parameters, {} of the model’s. A draft at {:,} tokens takes {}, a token of the model {}; the cache grows "
        "by {:,} more bytes per token.",
        found.total,
        rounding.percent(found.total, model.counts.total),
        AT,
        rounding.flops(counts.decode_flops(AT)),
        rounding.flops(model.counts.decode_flops(AT)),
        counts.cache_bytes_per_token(),
    )


def prediction_result(model: Model) -> Html:
    """The parameters of the modules, in a line."""
    found = model.prediction
    return html("{:,} parameters", found.total if found else 0)
