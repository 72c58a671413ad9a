"""Qwen3: Qwen2's block without biases, and with a norm on each head's queries and keys. Also Qwen3-VL's text model.

Source: arXiv 2505.09388; tensor names as the published files.
"""

from __future__ import annotations

from ..facts import QUERY_VALUE, Gguf, Peft, Task
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Rope,
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
from .config import Size, config, fixed, key
from .llama import Llama, feed_forward
from .qwen2 import Qwen2
from .rope_config import read_rope
from .tasks import OLD_NAME


@config
class Qwen3(Qwen2):
    """Hyperparameters of Qwen3, in forward order."""

    d_head: Size = key("head_dim", 128)
    attention_bias: bool = key("attention_bias", False)


@config
class Qwen3VL(Llama):
    """Hyperparameters of Qwen3-VL's text model, in forward order: in a text without images, all three parts of a
    position are equal.

    The vision tower's output for the first layers is added only at image tokens.
    """

    n_kv_heads: Size = key("num_key_value_heads", 32)
    d_head: Size = key("head_dim", 128)
    mlp_bias: bool = fixed(False)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=500_000.0)


@architecture("qwen3_vl_text", "qwen3_vl", config=Qwen3VL, gguf=Gguf("qwen3vl"))
@architecture(
    "qwen3",
    config=Qwen3,
    gguf=Gguf("qwen3"),
    heads=OLD_NAME | {"EmbedModel": Task("an embedding", "narrow")},
    peft=Peft(QUERY_VALUE),
    called_by_vllm=("voyage_qwen3",),
)
def forward(w: Weights, ids: Array, c: Llama, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Llama, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Llama, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)
