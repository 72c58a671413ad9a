"""Moshi's language model: Llama's block, the gate and the map of the feed-forward network in one matrix.

It writes text beside speech: vectors of the sound are added to the text's, and a small decoder makes the codes of the
answer's sound of what this one gives. Both are left out here. Source: arXiv 2410.00037; tensor names as transformers.
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Positive, Size, activation, config, derived, fixed, key
from .llama import Llama


@config
class Moshi(Llama):
    """Hyperparameters of Moshi's language model, in forward order."""

    n_added: Size = fixed(1)
    norm_eps: Positive = key("rms_norm_eps", 1e-8)
    attention_bias: bool = fixed(False)
    sliding_window: Size = key("sliding_window", 3000)
    both_widths: Interval = key("ffn_dim", 22528)
    d_ff: Size = derived(lambda c: c.both_widths // 2)
    mlp_bias: bool = fixed(False)
    tied: bool = fixed(False)

    ignored = Llama.ignored | {"audio_vocab_size", "num_codebooks", "tie_word_embeddings"}

    def check(self) -> None:
        super().check()
        self.must_divide("n_heads", "d_model")
        if self.both_widths % 2:
            raise Problem(f"ffn_dim = {self.both_widths} is odd", "one half gates the other: give an even number")

    @property
    def masks(self) -> list[Mask]:
        return [SlidingWindow(self.sliding_window)] * self.n_layers


@architecture("moshi", config=Moshi)
def forward(w: Weights, ids: Array, c: Moshi, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size + c.n_added, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Moshi, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Moshi, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj.linear", c.n_heads * c.d_head), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj.linear", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj.linear", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    return linear(attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5), w, "o_proj.linear", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Moshi) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T 2F] -> [T F] -> [T D]."""
    gate, up = np.split(linear(x, w, "fc1", 2 * c.d_ff), 2, axis=-1)
    return linear(activation(c.activation)(gate) * up, w, "fc2", c.d_model)
