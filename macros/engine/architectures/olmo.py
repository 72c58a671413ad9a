"""OLMo: Llama's block with layer norms that have no weights, and queries, keys and values clipped in some sizes.

Source: arXiv 2402.00838; tensor names as transformers' files.
"""

from __future__ import annotations

import numpy as np

from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import apply_rope, attend, causal_mask, embed, heads, layer_norm, linear, positions, rope_table, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, config, fixed, key
from .llama import Llama, feed_forward


@config
class Olmo(Llama):
    """Hyperparameters of OLMo, in forward order."""

    norm_eps: float = fixed(1e-5)
    mlp_bias: bool = fixed(False)
    clip_qkv: Positive | None = key("clip_qkv", None)


@architecture("olmo", config=Olmo, gguf=Gguf("olmo", seventy=80, in_pairs=True), rounds_heads={"olmo": True})
def forward(w: Weights, ids: Array, c: Olmo, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = norm(x, w, c)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Olmo, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(norm(x, w, c), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(norm(x, w, c), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Olmo, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(project(x, w, "q_proj", c.n_heads * c.d_head, c), c.n_heads, c.d_head)
    k = heads(project(x, w, "k_proj", c.n_kv_heads * c.d_head, c), c.n_kv_heads, c.d_head)
    v = heads(project(x, w, "v_proj", c.n_kv_heads * c.d_head, c), c.n_kv_heads, c.d_head)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


def project(x: Array, w: Weights, name: str, width: int, c: Olmo) -> Array:
    """A linear map whose result is kept within ±clip_qkv: [T D] -> [T O]."""
    y = linear(x, w, name, width, bias=c.attention_bias)
    return y if c.clip_qkv is None else np.clip(y, -c.clip_qkv, c.clip_qkv)


def norm(x: Array, w: Weights, c: Olmo) -> Array:
    """A layer norm without weights: [T D] -> [T D]."""
    return layer_norm(x, w, "", c.norm_eps, weight=False, bias=False)
