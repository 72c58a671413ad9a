"""AFM (Arcee): Llama's block whose feed-forward network has no gate, ReLU squared between two matrices.

Source: arcee-ai/AFM-4.5B-Base; tensor names as transformers 5.
"""

from __future__ import annotations

from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import embed, linear, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Positive, activation, config, key
from .llama import Llama, attention


@config
class Arcee(Llama):
    """Hyperparameters of AFM, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    activation: str = key("hidden_act", "relu2")


@architecture("arcee", config=Arcee)
def forward(w: Weights, ids: Array, c: Arcee, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Arcee, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Llama) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "up_proj", c.d_ff, bias=c.mlp_bias))
    return linear(wide, w, "down_proj", c.d_model, bias=c.mlp_bias)
