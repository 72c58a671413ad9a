"""StableLM and Orion: Llama's block with layer norms; some sizes normalize each head's query and key, and have parallel
halves.

Source: arXiv 2402.17834 (Stable LM 2), the model card of StableLM-3B-4E1T, 2401.12246 (Orion); tensor names as the
published files.
"""

from __future__ import annotations

from ..facts import QUERY_VALUE, Gguf, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope,
    attend,
    causal_mask,
    embed,
    head_norms,
    heads,
    layer_norm,
    linear,
    positions,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Size, config, fixed, key
from .llama import Llama, feed_forward
from .rope_config import read_rope


@config
class StableLM(Llama):
    """Hyperparameters of StableLM, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 32)
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    attention_bias: bool = key("use_qkv_bias", False)
    qk_norm: bool = key("qk_layernorm", False)
    parallel: bool = key("use_parallel_residual", False)

    @property
    def rope(self) -> Rope:
        return read_rope({"partial_rotary_factor": 0.25, **self.rope_parameters})


@config
class Orion(StableLM):
    """Hyperparameters of Orion, in forward order: the whole head rotates."""

    n_kv_heads: Size = key("num_key_value_heads", lambda c: c.n_heads)
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    attention_bias: bool = key("attention_bias", False)
    qk_norm: bool = fixed(False)
    parallel: bool = fixed(False)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)


@architecture("orion", config=Orion, gguf=Gguf("orion"))
@architecture(
    "stablelm",
    config=StableLM,
    gguf=Gguf("stablelm"),
    peft=Peft(QUERY_VALUE),
    classes={"stablelm": "StableLMEpochForCausalLM"},  # before transformers had it; vLLM, models/registry.py
)
def forward(w: Weights, ids: Array, c: StableLM, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = layer_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: StableLM, table: RopeTable) -> Array:
    """One transformer block, its halves in parallel or one after the other: [T D] -> [T D]."""
    y = layer_norm(x, w, "input_layernorm", c.norm_eps)
    attended = x + attention(y, w.at("self_attn"), cache, c, table)
    if not c.parallel:
        y = layer_norm(attended, w, "post_attention_layernorm", c.norm_eps)
    return attended + feed_forward(y, w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: StableLM, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    if c.qk_norm:
        q, k = (
            head_norms(q, w, "q_layernorm.norms.{e}.weight", c.norm_eps),
            head_norms(k, w, "k_layernorm.norms.{e}.weight", c.norm_eps),
        )
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5), w, "o_proj", c.d_model)
