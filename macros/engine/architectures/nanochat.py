"""nanochat: norms without weights, queries and keys normalized after the rotation, scores squeezed at the end.

Pairs rotate in the opposite direction to Llama's. Source: github.com/karpathy/nanochat; tensor names as transformers 5.
"""

from __future__ import annotations

import numpy as np

from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    attend,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    rope_table,
    soft_cap,
    unembed,
    unit_norm,
)
from ..steps import Holds, Keeps, Role, step
from . import architecture
from .config import Positive, activation, config, fixed, key
from .llama import Llama


@config
class NanoChat(Llama):
    """Hyperparameters of nanochat, in forward order."""

    mlp_bias: bool = fixed(False)
    activation: str = key("hidden_act", "relu2")
    soft_cap: Positive | None = key("final_logit_softcapping", 15.0)

    ignored = Llama.ignored | {"mlp_bias"}


@architecture("nanochat", config=NanoChat, rounds_heads={"nanochat": False})
def forward(w: Weights, ids: Array, c: NanoChat, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = unit_norm(embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model), c.norm_eps)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    logits = unembed(unit_norm(x, c.norm_eps), w, head, c.vocab_size, last=last)
    return logits if c.soft_cap is None else soft_cap(logits, c.soft_cap)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: NanoChat, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(unit_norm(x, c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(unit_norm(x, c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: NanoChat, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q, k = unit_norm(apply_rope_clockwise(q, table), c.norm_eps), unit_norm(apply_rope_clockwise(k, table), c.norm_eps)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.ROPE, keeps=Keeps.NOTHING)
def apply_rope_clockwise(x: Array, table: RopeTable) -> Array:
    """Rotate a head's pairs by the position's angle, clockwise, first half with second: [T N H] -> [T N H]."""
    cos, sin = (t[:, None, :] for t in table)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos + b * sin, b * cos - a * sin], axis=-1)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: NanoChat) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(activation(c.activation)(linear(x, w, "fc1", c.d_ff)), w, "fc2", c.d_model)
