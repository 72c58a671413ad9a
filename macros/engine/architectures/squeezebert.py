"""SqueezeBERT: BERT's encoder whose matrices are cut into groups, each for a part of the vector.

The text is read at once: nothing is kept for a next step. Source: arXiv 2006.11316; tensor names as transformers' model
for masked words (SqueezeBertForMaskedLM), which stores a pooler that it does not use.
"""

from __future__ import annotations

import numpy as np

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, layer_norm
from ..steps import Role, step
from . import architecture
from .bert import Bert, prediction_head
from .config import Interval, Size, activation, config, fixed, key
from .tasks import OF_REMBERT

NORM_EPS = 1e-12  # of the norms in layers, which no key sets


@config
class SqueezeBert(Bert):
    """Hyperparameters of SqueezeBERT, in forward order."""

    d_embedding: Size = key("embedding_size", 768)
    q_groups: Interval = key("q_groups", 4)
    k_groups: Interval = key("k_groups", 4)
    v_groups: Interval = key("v_groups", 4)
    output_groups: Interval = key("post_attention_groups", 1)
    wide_groups: Interval = key("intermediate_groups", 4)
    narrow_groups: Interval = key("output_groups", 4)
    trunk: str = fixed("transformer")

    def check(self) -> None:
        super().check()
        self.must_not_exceed("d_embedding", "d_model")
        self.must_not_exceed("d_model", "d_embedding")
        for groups in ("q_groups", "k_groups", "v_groups", "output_groups", "wide_groups", "narrow_groups"):
            self.must_divide(groups, "d_model")
        self.must_divide("wide_groups", "d_ff")
        self.must_divide("narrow_groups", "d_ff")


@architecture("squeezebert", config=SqueezeBert, heads=OF_REMBERT, peft=Peft(tied_head="cls.predictions.decoder"))
def forward(w: Weights, ids: Array, c: SqueezeBert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = c.embedded(ids, cache, w)
    for _, w_layer, _ in w.layers("transformer.encoder.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    w("transformer.pooler.dense.weight", c.d_model, c.d_model)
    w("transformer.pooler.dense.bias", c.d_model)
    return prediction_head(x, w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: SqueezeBert) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = layer_norm(x + attention(x, w, c), w, "post_attention.layernorm", NORM_EPS)
    return layer_norm(x + feed_forward(x, w, c), w, "output.layernorm", NORM_EPS)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: SqueezeBert) -> Array:
    """Let each token gather information from all tokens, including later ones: [T D] -> [T D]."""
    q = heads(grouped(x, w, "attention.query", c.d_model, c.q_groups), c.n_heads, c.d_head)
    k = heads(grouped(x, w, "attention.key", c.d_model, c.k_groups), c.n_heads, c.d_head)
    v = heads(grouped(x, w, "attention.value", c.d_model, c.v_groups), c.n_heads, c.d_head)
    return grouped(attend(q, k, v, None, c.d_head**-0.5), w, "post_attention.conv1d", c.d_model, c.output_groups)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: SqueezeBert) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(grouped(x, w, "intermediate.conv1d", c.d_ff, c.wide_groups))
    return grouped(wide, w, "output.conv1d", c.d_model, c.narrow_groups)


@step(Role.LINEAR)
def grouped(x: Array, w: Weights, name: str, width: int, groups: int) -> Array:
    """Multiply each part of a vector by a matrix of its own, with a bias: [T G·I], [G·O I 1] -> [T G·O]."""
    inside = x.shape[1] // groups
    weight = w(f"{name}.weight", width, inside, 1).reshape(groups, width // groups, inside)
    y = np.einsum("tgi,goi->tgo", x.reshape(x.shape[0], groups, inside), weight, optimize=True)
    return y.reshape(x.shape[0], width) + w(f"{name}.bias", width)
