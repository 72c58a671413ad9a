"""Phi 1 to 2: both halves of the block in parallel on one norm, rotary positions on part of each head.

Source: arXiv 2306.11644 (phi-1), 2309.05463 (phi-1.5); tensor names as the published files.
"""

from __future__ import annotations

from ..facts import Gguf, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
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
class Phi(Config):
    """Hyperparameters of Phi 1 to 2, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    # attention
    n_heads: Size = key("num_attention_heads")
    n_kv_heads: Size = key("num_key_value_heads", lambda c: c.n_heads)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    qk_norm: bool = key("qk_layernorm", False)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # feed-forward
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "gelu_new")
    # head
    tied: bool = key("tie_word_embeddings", False)

    rewritten = OLDER_ROPE_KEYS

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        self.must_divide("n_kv_heads", "n_heads")
        activation(self.activation)

    @property
    def rope(self) -> Rope:
        return read_rope({"partial_rotary_factor": 0.5, **self.rope_parameters})


@architecture("phi", config=Phi, gguf=Gguf("phi2"), peft=Peft(("q_proj", "v_proj", "fc1", "fc2")))
def forward(w: Weights, ids: Array, c: Phi, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = layer_norm(x, w, "model.final_layernorm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last, bias="lm_head.bias")


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Phi, table: RopeTable) -> Array:
    """One transformer block, both halves in parallel: [T D] -> [T D]."""
    y = layer_norm(x, w, "input_layernorm", c.norm_eps)
    return x + attention(y, w.at("self_attn"), cache, c, table) + feed_forward(y, w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Phi, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=True), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=True), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=True), c.n_kv_heads, c.d_head)
    if c.qk_norm:
        q, k = layer_norm(q, w, "q_layernorm", c.norm_eps), layer_norm(k, w, "k_layernorm", c.norm_eps)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5), w, "dense", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Phi) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(activation(c.activation)(linear(x, w, "fc1", c.d_ff, bias=True)), w, "fc2", c.d_model, bias=True)
