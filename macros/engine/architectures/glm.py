"""GLM-4: Llama's block with a fused gate, few key/value heads, and rotary positions on half of each head, in pairs.

The 0414 release also normalizes each half's output. Source: arXiv 2406.12793; tensor names as transformers' files.
"""

from __future__ import annotations

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope_pairs,
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
from .config import Positive, Size, config, fixed, key
from .llama import Llama
from .phi3 import feed_forward
from .rope_config import read_rope


@config
class GLM(Llama):
    """Hyperparameters of GLM-4, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 2)
    d_head: Size = key("head_dim", 128)
    norm_eps: Positive = key("rms_norm_eps", 1.5625e-07)
    attention_bias: bool = key("attention_bias", True)
    norms_outputs: bool = fixed(False)

    @property
    def rope(self) -> Rope:
        return read_rope({"partial_rotary_factor": 0.5, **self.rope_parameters})


@config
class GLM4(GLM):
    """Hyperparameters of GLM-4-0414, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    norms_outputs: bool = fixed(True)


@architecture("glm", config=GLM)
@architecture("glm4", config=GLM4)
def forward(w: Weights, ids: Array, c: GLM, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GLM, table: RopeTable) -> Array:
    """One transformer block, in the 0414 release with a norm after each half too: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    x = x + (rms_norm(y, w, "post_self_attn_layernorm", c.norm_eps) if c.norms_outputs else y)
    y = feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)
    return x + (rms_norm(y, w, "post_mlp_layernorm", c.norm_eps) if c.norms_outputs else y)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: GLM, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q, k = apply_rope_pairs(q, table), apply_rope_pairs(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5), w, "o_proj", c.d_model)
