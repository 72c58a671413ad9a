"""A.X K2: DeepSeek-V3.2 whose queries come with a gate on the heads' values, and whose norms gate themselves.

Source: skt/A.X-K2, config.json; tensor names of transformers.
"""

from __future__ import annotations

import numpy as np

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    embed,
    feed_forward,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    self_gated_norm,
    sigmoid,
    strictly_causal_mask,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Size, activation, config, key
from .deepseek_v2 import LATENT_EPS, latents, read_values_out, turn
from .deepseek_v3 import mixture_of_experts
from .deepseek_v32 import DeepSeekV32, IndexedKind, indexer
from .tensor_layouts import FUSED


@config
class AXK2(DeepSeekV32):
    """Hyperparameters of A.X K2, in forward order."""

    dense_layers: int = key("first_k_dense_replace", 1)
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    gate_rank: Size = key("gated_norm_rank", 16)


@architecture(
    "axk2",
    config=AXK2,
    fused=FUSED,
    spellings=(
        (".W_down.", ".mlp.fc1."),
        (".W_up.", ".mlp.fc2."),
        ("self_attn.q_b_proj.", "self_attn.q_gate_proj."),
    ),
)
def forward(w: Weights, ids: Array, c: AXK2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: AXK2, kind: IndexedKind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = self_gated_norm(x, w.at("input_layernorm"), c.norm_eps, c.gate_rank)
    x = x + attention(y, w.at("self_attn"), cache, c, table)
    if kind.moe:
        y = self_gated_norm(x, w.at("post_attention_layernorm"), c.norm_eps, c.gate_rank)
        return x + mixture_of_experts(y, w.at("mlp"), c)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: AXK2, table: RopeTable) -> Array:
    """Let each token gather information from the tokens that the indexer picks, through a gate: [T D] -> [T D]."""
    N, H, H_rope, V = c.n_heads, c.qk_nope_head_dim, c.qk_rope_head_dim, c.v_head_dim
    raw = linear(x, w, "q_a_proj", c.q_lora_rank, bias=c.attention_bias)
    narrow = rms_norm(raw, w, "q_a_layernorm", LATENT_EPS)
    both = linear(np.concatenate([narrow, raw], axis=-1), w, "q_gate_proj", N * (H + H_rope + V))
    q, q_rope, gate = np.split(heads(both, N, H + H_rope + V), [H, H + H_rope], axis=-1)
    latent, k_rope = latents(x, w, cache, c, table)
    allowed = strictly_causal_mask(cache, q, latent, Full())
    seen = indexer(x, narrow, allowed, w.at("indexer"), cache, c, table)
    latent, k_rope = np.take(latent, seen, axis=0), np.take(k_rope, seen, axis=0)
    allowed = np.take_along_axis(allowed, seen, axis=1)
    values = read_values_out(q, turn(q_rope, c, table), latent, k_rope, allowed, w, c) * sigmoid(gate)
    return linear(values.reshape(values.shape[0], N * V), w, "o_proj", c.d_model, bias=c.attention_bias)
