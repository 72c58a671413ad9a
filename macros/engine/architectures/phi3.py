"""Phi-3 and Phi-4: Llama's block with fused matrices (queries, keys and values in one; gate and up in one).

Source: arXiv 2404.14219 (Phi-3), 2412.08905 (phi-4), 2503.01743 (Phi-4-mini); tensor names as the published files.
"""

from __future__ import annotations

import numpy as np

from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import Rope, apply_rope, attend, causal_mask, embed, heads, linear, positions, rms_norm, rope_table, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Size, activation, config, key
from .llama import Llama, Mistral
from .rope_config import read_rope


@config
class Phi3(Mistral):
    """Hyperparameters of Phi-3, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", lambda c: c.n_heads)
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    trained_context: Size = key("original_max_position_embeddings", 4096)

    @property
    def rope(self) -> Rope:
        return read_rope({"original_max_position_embeddings": self.trained_context, **self.rope_parameters})

    ignored = frozenset(
        {"attention_bias", "mlp_bias", "lm_head_bias", "full_attn_mod", "interpolate_factor", "embd_layer"}
    )


@config
class Phi4Multimodal(Phi3):
    """Hyperparameters of Phi-4 multimodal's text model, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 8)


@config
class Phi3Vision(Phi3):
    """Hyperparameters of Phi-3 vision's text model, in forward order."""

    ignored = Phi3.ignored | {"img_processor"}
    caveat = "Its files also hold an image tower, which the figures leave out."


@architecture("phi3_v", config=Phi3Vision)
@architecture("phi4_multimodal", config=Phi4Multimodal, rounds_heads={"phi4_multimodal": True})
@architecture("phi3", config=Phi3, gguf=Gguf("phi3"), rounds_heads={"phi3": True})
def forward(w: Weights, ids: Array, c: Phi3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Phi3, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Phi3, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q, k, v = np.split(linear(x, w, "qkv_proj", N * H + 2 * K * H), [N * H, N * H + K * H], axis=-1)
    q, k, v = apply_rope(heads(q, N, H), table), apply_rope(heads(k, K, H), table), heads(v, K, H)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    return linear(attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5), w, "o_proj", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Llama) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T 2F] -> [T F] -> [T D]."""
    gate, up = np.split(linear(x, w, "gate_up_proj", 2 * c.d_ff), 2, axis=-1)
    return linear(activation(c.activation)(gate) * up, w, "down_proj", c.d_model)
