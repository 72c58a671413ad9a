"""The Q-Former, which several towers end in: trained vectors that gather information from each other and from patches.

Source: transformers 5.23, modeling_blip_2.py (arXiv 2301.12597).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..architectures.config import activation
from ..interface import Array, KVCache, Weights
from ..ops import attend, layer_norm, linear
from ..steps import Role, step


class QFormer(NamedTuple):
    """The sizes of a Q-Former; every `period`-th layer reads the patches. `after`: how many
    layers come before its own. `reads_text`: it can read an instruction, too."""

    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int
    period: int
    eps: float
    activation: str
    after: int
    reads_text: bool = False

    def kinds(self, shared: bool) -> list[str]:
        """Whether each layer has cross-attention, and whether it is the first one."""
        reading = ["reading" if i % self.period == 0 else "layer" for i in range(self.n_layers)]
        return ["first reading", *reading[1:]] if shared else reading


def qformer_of(c: Any, n_heads: int, reads_text: bool = False) -> QFormer:
    """The sizes of the Q-Former that follows the layers of this tower."""
    sizes = c.d_qformer, c.n_qformer_layers, n_heads, c.d_qformer_ff
    return QFormer(*sizes, int(c.period), c.qformer_eps, c.qformer_activation, c.n_layers, reads_text)


def encode(
    y: Array, x: Array, w: Weights, q: QFormer, cache: KVCache, windows: int = 1, *, shared: bool = False
) -> Array:
    """Attention of the normalized vectors: [M D], [P E] -> [M D]. Those of each window stand together, and see only
    their window. `shared`: those given are of every window."""
    for kind, w_layer, _ in w.layers("encoder.layer", q.kinds(shared), cache, "Q-Former", q.after):
        before = 1 if kind == "first reading" else windows
        y = layer(y, x, w_layer, q, kind != "layer", before, windows)
    return y


@step(Role.LAYER)
def layer(y: Array, x: Array, w: Weights, q: QFormer, reads: bool, before: int, windows: int) -> Array:
    """One transformer block, normalized after each part: [M D], [P E] -> [M D]."""
    y = attention(y, y, w.at("attention"), q, before, before)
    if reads:
        y = attention(y, x, w.at("crossattention"), q, before, windows)
    if q.reads_text:
        unused_feed_forward(w, q)
    z = feed_forward(y, w, q)
    return layer_norm(z + y, w, "output_query.LayerNorm", q.eps)


@step(Role.ATTENTION)
def attention(y: Array, x: Array, w: Weights, q: QFormer, before: int, windows: int) -> Array:
    """Let each vector gather information from all that it sees: [M D], [P E] -> [M D]. `before`: of how many windows
    the vectors are."""
    width, each = q.d_model // q.n_heads, y.shape[0] // before
    # windows are treated as additional heads
    queries, keys, values = (
        linear(part, w, f"attention.{name}", q.d_model, bias=True)
        .reshape(number, part.shape[0] // number, q.n_heads, width)
        .transpose(1, 0, 2, 3)
        for part, name, number in ((y, "query", before), (x, "key", windows), (x, "value", windows))
    )
    queries = np.broadcast_to(queries, (each, windows, q.n_heads, width))
    queries, keys, values = (
        part.reshape(part.shape[0], windows * q.n_heads, width) for part in (queries, keys, values)
    )
    mixed = attend(queries, keys, values, None, width**-0.5).reshape(each, windows, q.d_model).swapaxes(0, 1)
    mixed = linear(mixed.reshape(windows * each, q.d_model), w, "output.dense", q.d_model, bias=True)
    y = np.broadcast_to(y.reshape(before, each, q.d_model), (windows, each, q.d_model))
    return layer_norm(mixed + y.reshape(windows * each, q.d_model), w, "output.LayerNorm", q.eps)


@step(Role.FEED_FORWARD)
def feed_forward(y: Array, w: Weights, q: QFormer) -> Array:
    """Process each vector separately, in a wider space: [M D] -> [M F] -> [M D]."""
    y = activation(q.activation)(linear(y, w, "intermediate_query.dense", q.d_ff, bias=True))
    return linear(y, w, "output_query.dense", q.d_model, bias=True)


def unused_feed_forward(w: Weights, q: QFormer) -> None:
    """The tensors of the feed-forward part for an instruction's tokens."""
    w("intermediate.dense.weight", q.d_ff, q.d_model)
    w("intermediate.dense.bias", q.d_ff)
    w("output.dense.weight", q.d_model, q.d_ff)
    for name in ("dense.bias", "LayerNorm.weight", "LayerNorm.bias"):
        w(f"output.{name}", q.d_model)
