"""Baichuan and Baichuan 2: Llama's block with queries, keys and values in one matrix.

The 7B models have rotary positions, the 13B models ALiBi; the head of Baichuan 2 is normalized. Sources: arXiv
2309.10305; baichuan-inc/Baichuan2-7B-Base and -13B-Base, whose modeling_baichuan.py and tensor names these are.
"""

from __future__ import annotations

import numpy as np

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    alibi,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    last_row,
    linear,
    positions,
    rms_norm,
    rope_table,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Size, config, derived, fixed
from .llama import Llama, feed_forward

TURNING = 4096  # d_model of the models with rotary positions
NORMALIZED = 125_696  # the vocabulary of those with a normalized head


@config
class Baichuan(Llama):
    """Hyperparameters of Baichuan, in forward order."""

    n_kv_heads: Size = derived(lambda c: c.n_heads)
    d_head: Size = derived(lambda c: c.default_head_dim())
    attention_bias: bool = fixed(False)
    mlp_bias: bool = fixed(False)

    ignored = Llama.ignored | {"_from_model_config", "gradient_checkpointing_enable", "z_loss_weight"}

    @property
    def turns(self) -> bool:
        """Whether positions are rotary."""
        return int(self.d_model) == TURNING


@architecture("baichuan", config=Baichuan, gguf="llama.cpp's converter does not come to an end on it")
def forward(w: Weights, ids: Array, c: Baichuan, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope) if c.turns else None
    for _, w_layer, cache_layer in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    return head(rms_norm(x, w, "model.norm", c.norm_eps), w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Baichuan, table: RopeTable | None) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Baichuan, table: RopeTable | None) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q, k, v = (heads(one, c.n_heads, c.d_head) for one in np.split(linear(x, w, "W_pack", 3 * c.d_model), 3, axis=-1))
    if table is not None:
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    far = alibi(k, c.n_heads) if table is None else None
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5, far), w, "o_proj", c.d_model)


@step(Role.UNEMBED)
def head(x: Array, w: Weights, c: Baichuan, *, last: bool) -> Array:
    """A score for every token of the vocabulary; the head's rows may be normalized to one length: [T D], [V D] -> [T
    V], or [1 V].
    """
    table = w("model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, c.d_model)
    if int(c.vocab_size) == NORMALIZED:
        table = table / np.maximum(np.sqrt((table * table).sum(axis=-1, keepdims=True)), 1e-12)
    return np.einsum("td,vd->tv", last_row(x) if last else x, table, optimize=True)
