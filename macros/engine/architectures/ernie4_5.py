"""ERNIE 4.5, dense: Llama's block on neighboring pairs.

Source: ERNIE 4.5 technical report, baidu/ERNIE-4.5-0.3B-PT; tensor names as transformers 5.
"""

from __future__ import annotations

from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Rope,
    apply_rope_pairs,
    attend,
    causal_mask,
    embed,
    feed_forward,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Size, activation, config, fixed, key
from .llama import Llama
from .rope_config import read_rope


@config
class Ernie45(Llama):
    """Hyperparameters of ERNIE 4.5's dense models, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    bias: bool = key("use_bias", False)
    n_kv_heads: Size = key("num_key_value_heads", 2)
    d_head: Size = key("head_dim", 128)
    attention_bias: bool = fixed(False)
    mlp_bias: bool = fixed(False)
    tied: bool = key("tie_word_embeddings", True)

    ignored = Llama.ignored | {
        "compression_ratio",
        "freq_allocation",
        "fuse_rope",
        "use_rmsnorm",
        "rope_3d",
        "attention_bias",
        "mlp_bias",
    }

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=500_000.0)


@architecture("ernie4_5", config=Ernie45, gguf=Gguf("ernie4_5"))
def forward(w: Weights, ids: Array, c: Ernie45, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Ernie45, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), bias=c.bias)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Ernie45, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.bias), c.n_kv_heads, c.d_head)
    q, k = apply_rope_pairs(q, table), apply_rope_pairs(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.bias)
