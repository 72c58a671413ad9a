"""Phixtral: several of Phi 2's feed-forward networks as the experts of one model, under the names of its first code.

Sources: mlabonne/phixtral-4x2_8, config.json; mlx-lm 0.32, models/phixtral.py, whose tensor names are those of the
published files.
"""

from __future__ import annotations

import numpy as np

from ..facts import UNREAD
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    heads,
    layer_norm,
    linear,
    positions,
    rope_table,
    softmax_routing,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Size, activation, config, key
from .gptj import GPTJ
from .nllb_moe import experts

EXPERT = "{e}"


@config
class Phixtral(GPTJ):
    """Hyperparameters of Phixtral, in forward order."""

    n_kv_heads: None = key("n_head_kv", None)
    d_rotary: Size = key("rotary_dim", 32)
    # experts
    n_experts: Size = key("num_local_experts")
    n_experts_per_token: Size = key("num_experts_per_tok", 2)

    ignored = GPTJ.ignored | {"flash_attn", "flash_rotary", "fused_dense", "img_processor"}

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")


@architecture(
    "phi-msft",
    "phixtral",
    config=Phixtral,
    gguf=UNREAD,
    classes=dict.fromkeys(("phi-msft", "phixtral"), "PhiForCausalLM"),  # mlabonne/phixtral-4x2_8, config.json
)
def forward(w: Weights, ids: Array, c: Phixtral, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.embd.wte.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, Rope(partial=c.d_rotary / c.d_head))
    for _, w_layer, cache_layer in w.layers("transformer.h", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = layer_norm(x, w, "lm_head.ln", c.norm_eps)
    head = "transformer.embd.wte.weight" if c.tied else "lm_head.linear.weight"
    return unembed(x, w, head, c.vocab_size, last=last, bias="lm_head.linear.bias")


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Phixtral, table: RopeTable) -> Array:
    """One transformer block, both halves in parallel: [T D] -> [T D]."""
    y = layer_norm(x, w, "ln", c.norm_eps)
    return x + attention(y, w.at("mixer"), cache, c, table) + mixture_of_experts(y, w.at("moe"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Phixtral, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, H = c.n_heads, c.d_head
    q, k, v = (heads(part, N, H) for part in np.split(linear(x, w, "Wqkv", 3 * c.d_model, bias=True), 3, axis=-1))
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5)
    return linear(mixed, w, "out_proj", c.d_model, bias=True)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Phixtral) -> Array:
    """A few experts chosen for each token: [T D] -> [T k D] -> [T D]."""
    chosen, shares = softmax_routing(linear(x, w, "gate", c.n_experts), c.n_experts_per_token, normalise=True)
    act = activation(c.activation)
    return combine(experts(x, chosen, w.at("mlp"), EXPERT, c.n_experts, c.d_ff, act), shares)
