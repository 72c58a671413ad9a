"""Persimmon: GPT-NeoX's block in order, queries and keys normalized by the head, ReLU squared, half of each head
rotated.

Source: adept.ai/blog/persimmon-8b; tensor names as transformers 5.
"""

from __future__ import annotations

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope,
    attend,
    causal_mask,
    embed,
    layer_norm,
    linear,
    positions,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Raw, Size, activation, config, derived, key
from .rope_config import OLDER_ROPE_KEYS, read_rope


@config
class Persimmon(Config):
    """Hyperparameters of Persimmon, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    # attention
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    qk_norm: bool = key("qk_layernorm", True)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # feed-forward
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "relu2")
    # head
    tied: bool = key("tie_word_embeddings", False)

    rewritten = OLDER_ROPE_KEYS
    ignored = frozenset({"num_key_value_heads"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)

    @property
    def rope(self) -> Rope:
        return read_rope({"partial_rotary_factor": 0.5, **self.rope_parameters})


@architecture("persimmon", config=Persimmon)
def forward(w: Weights, ids: Array, c: Persimmon, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = layer_norm(x, w, "model.final_layernorm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Persimmon, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(layer_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    return x + feed_forward(layer_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Persimmon, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    qkv = linear(x, w, "query_key_value", 3 * c.n_heads * c.d_head, bias=True)
    qkv = qkv.reshape(x.shape[0], c.n_heads, 3, c.d_head)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    if c.qk_norm:
        q, k = layer_norm(q, w, "q_layernorm", c.norm_eps), layer_norm(k, w, "k_layernorm", c.norm_eps)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5), w, "dense", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Persimmon) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "dense_h_to_4h", c.d_ff, bias=True))
    return linear(wide, w, "dense_4h_to_h", c.d_model, bias=True)
