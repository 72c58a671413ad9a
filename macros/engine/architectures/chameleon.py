"""Chameleon: Llama's block with a layer norm on each head's queries and keys; images are tokens of its vocabulary.

Source: arXiv 2405.09818; tensor names as transformers 5. What turns an image into tokens is not part of the forward
pass.
"""

from __future__ import annotations

from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    apply_rope,
    attend,
    causal_mask,
    embed,
    head_norms,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import MEDIA_TOKENS, Positive, Size, config, fixed, key
from .llama import Llama, feed_forward


@config
class Chameleon(Llama):
    """Hyperparameters of Chameleon, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    # The larger model normalizes the output of each half of a block, the smaller one its input.
    norms_outputs: bool = key("swin_norm", False)
    n_kv_heads: Size = key("num_key_value_heads", 32)
    d_head: Size = key("head_dim", lambda c: c.default_head_dim())
    head_eps: Positive = fixed(1e-5)

    ignored = Llama.ignored | MEDIA_TOKENS | {"model_parallel_size", "vocabulary_map", "vq_config"}


@architecture(
    "chameleon",
    config=Chameleon,
    gguf=Gguf("chameleon"),
    classes={"chameleon": "ChameleonForConditionalGeneration"},  # transformers 5.24, models/chameleon
)
def forward(w: Weights, ids: Array, c: Chameleon, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Chameleon, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    if c.norms_outputs:
        x = x + rms_norm(attention(x, w.at("self_attn"), cache, c, mask, table), w, "input_layernorm", c.norm_eps)
        return x + rms_norm(feed_forward(x, w.at("mlp"), c), w, "post_attention_layernorm", c.norm_eps)
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Chameleon, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q = head_norms(q, w, "q_norm.weight", c.head_eps) + w("q_norm.bias", c.n_heads, c.d_head)
    k = head_norms(k, w, "k_norm.weight", c.head_eps) + w("k_norm.bias", c.n_kv_heads, c.d_head)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)
