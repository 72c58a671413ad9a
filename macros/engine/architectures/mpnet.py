"""MPNet: BERT's encoder, whose scores depend on the distance too, by one table for all layers.

The text is read at once: nothing is kept for a next step. Source: arXiv 2004.09297; tensor names as transformers' model
for masked words (MPNetForMaskedLM).
"""

from __future__ import annotations

from typing import Literal

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import attend, embed, embed_positions, heads, layer_norm, linear, positions, relative_bias
from ..steps import Role, step
from . import architecture
from .bert import Bert, feed_forward
from .config import config, fixed, key
from .roberta import masked_head
from .tasks import OF_ROBERTA


@config
class MPNet(Bert):
    """Hyperparameters of MPNet, in forward order; it has no segments."""

    must_be_tied: bool | None = fixed(True)
    n_buckets: Literal[32] = key("relative_attention_num_buckets", 32)

    @property
    def first_row(self) -> int:
        return 2  # the padding token's number, fixed in its embeddings, and one more


@architecture(
    "mpnet",
    config=MPNet,
    spellings=(("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")),
    heads=OF_ROBERTA,
    peft=Peft(tied_head="lm_head.decoder"),
)
def forward(w: Weights, ids: Array, c: MPNet, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    tables = w.at("mpnet.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    x = x + embed_positions(places + c.first_row, tables, "position_embeddings.weight", c.n_positions, c.d_model)
    x = layer_norm(x, w, "mpnet.embeddings.LayerNorm", c.norm_eps)
    name = "mpnet.encoder.relative_attention_bias.weight"
    bias = relative_bias(places, places, w, name, c.n_buckets, c.n_heads, 128, to_both_sides=True)
    for _, w_layer, _ in w.layers("mpnet.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, bias)
    return masked_head(x, w, c.vocab_size, c.norm_eps, "mpnet.embeddings.word_embeddings", last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: MPNet, bias: Array) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = layer_norm(x + attention(x, w.at("attention.attn"), c, bias), w, "attention.LayerNorm", c.norm_eps)
    return layer_norm(x + feed_forward(x, w, c), w, "output.LayerNorm", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: MPNet, bias: Array) -> Array:
    """Let each token gather information from all tokens, including later ones: [T D] -> [T D]."""
    q, k, v = (heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head) for name in ("q", "k", "v"))
    return linear(attend(q, k, v, None, c.d_head**-0.5, bias), w, "o", c.d_model, bias=True)
