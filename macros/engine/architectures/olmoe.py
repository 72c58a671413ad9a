"""OLMoE: every layer a mixture of experts, queries and keys normalized over all heads at once.

Source: arXiv 2409.02060; tensor names as the published files.
"""

from __future__ import annotations

import numpy as np

from ..facts import NAMED_EXPERTS, Gguf, Mlx, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    gated_experts,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    softmax_routing,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Size, activation, config, key
from .llama import Llama
from .tensor_layouts import EXPERT, FUSED


@config
class OLMoE(Llama):
    """Hyperparameters of OLMoE, in forward order. d_ff is the inner width of one expert."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    clip: Positive | None = key("clip_qkv", None)
    n_experts: Size = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    normalise: bool = key("norm_topk_prob", False)

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")


@architecture(
    "olmoe", config=OLMoE, fused=FUSED, gguf=Gguf("olmoe"), peft=Peft(stacked=NAMED_EXPERTS), mlx=Mlx(routers="linear")
)
def forward(w: Weights, ids: Array, c: OLMoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: OLMoE, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + mixture_of_experts(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: OLMoE, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = rms_norm(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), w, "q_norm", c.norm_eps)
    k = rms_norm(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), w, "k_norm", c.norm_eps)
    v = linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias)
    if c.clip:
        q, k, v = (np.clip(a, -c.clip, c.clip) for a in (q, k, v))
    q, k = apply_rope(heads(q, c.n_heads, c.d_head), table), apply_rope(heads(k, c.n_kv_heads, c.d_head), table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, heads(v, c.n_kv_heads, c.d_head), mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: OLMoE) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    chosen, shares = softmax_routing(linear(x, w, "gate", c.n_experts), c.n_experts_per_token, normalise=c.normalise)
    return combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff, activation(c.activation)), shares)
