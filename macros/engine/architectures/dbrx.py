"""DBRX: a mixture of experts whose matrices lie one below the other in one tensor; queries, keys, values clipped.

Source: github.com/databricks/dbrx; tensor names as the published files.
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..facts import Gguf, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    expert_linear,
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
from .config import Config, Positive, Raw, Size, activation, config, derived, fixed, fold_table, key
from .otherwise import Otherwise, inner
from .rope_config import OLDER_ROPE_KEYS, fold_rope, read_rope


@config
class Dbrx(Config):
    """Hyperparameters of DBRX, in forward order. d_ff is the inner width of one expert."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("d_model", also=("hidden_size",))
    # layers
    n_layers: Size = key("n_layers", also=("num_hidden_layers",))
    norm_eps: float = fixed(1e-5)
    # attention
    n_heads: Size = key("n_heads", also=("num_attention_heads",))
    n_kv_heads: Size = key("attn_config.kv_n_heads", 1)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    clip: Positive | None = key("attn_config.clip_qkv", None)
    rope_theta: Positive = key("attn_config.rope_theta", 10000.0)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # experts
    d_ff: Size = key("ffn_config.ffn_hidden_size")
    activation: Raw = key("ffn_config.ffn_act_fn", lambda c: {"name": "silu"})
    n_experts: Size = key("ffn_config.moe_num_experts")
    n_experts_per_token: Size = key("ffn_config.moe_top_k")
    normalise: float | None = key("ffn_config.moe_normalize_expert_weights", 1.0)

    otherwise = (
        Otherwise(
            "attn_config", inner("attn_config", "rope_theta", 10_000), "transformers 5.24 takes 10,000 for rope_theta"
        ),
    )
    rewritten = OLDER_ROPE_KEYS | {"attn_config", "ffn_config"}
    ignored = frozenset(
        {
            "max_seq_len",
            "emb_pdrop",
            "num_key_value_heads",
            "tie_word_embeddings",
            "attn_config.attn_pdrop",
            "ffn_config.hidden_size",
            "ffn_config.moe_jitter_eps",
            "ffn_config.moe_loss_weight",
            "ffn_config.uniform_expert_assignment",
        }
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return fold_rope(fold_table(fold_table(raw, "attn_config"), "ffn_config"))

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        self.must_divide("n_kv_heads", "n_heads")
        self.must_not_exceed("n_experts_per_token", "n_experts")
        activation(str(self.activation.get("name", "silu")))
        if self.normalise not in (None, 1.0):
            raise Problem(
                f"ffn_config.moe_normalize_expert_weights = {self.normalise}: expected 1 or nothing",
                "correct the value: shares add up to 1 or are left as they are",
            )

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, self.rope_theta)


GGUF = Gguf(
    "dbrx",
    {
        "norm_attn_norm.norm_1": "attn_norm",
        "norm_attn_norm.norm_2": "attn_output_norm",
        "norm_attn_norm.attn.Wqkv": "attn_qkv",
        "norm_attn_norm.attn.out_proj": "attn_output",
        "ffn.router.layer": "ffn_gate_inp",
        "ffn.experts.mlp.w1": "equal:ffn_gate_exps",
        "ffn.experts.mlp.v1": "equal:ffn_up_exps",
        "ffn.experts.mlp.w2": "equal turned:ffn_down_exps",
    },
    f16=("ffn_gate_inp.weight",),
)


@architecture("dbrx", config=Dbrx, gguf=GGUF, peft=Peft(linear_router=True))
def forward(w: Weights, ids: Array, c: Dbrx, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.wte.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("transformer.blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = layer_norm(x, w, "transformer.norm_f", c.norm_eps, bias=False)
    return unembed(x, w, "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Dbrx, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    inner = w.at("norm_attn_norm")
    x = x + attention(layer_norm(x, inner, "norm_1", c.norm_eps, bias=False), inner.at("attn"), cache, c, table)
    return x + mixture_of_experts(layer_norm(x, inner, "norm_2", c.norm_eps, bias=False), w.at("ffn"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Dbrx, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    qkv = linear(x, w, "Wqkv", N * H + 2 * K * H)
    qkv = np.clip(qkv, -c.clip, c.clip) if c.clip else qkv
    q, k, v = np.split(qkv, [N * H, N * H + K * H], axis=-1)
    q, k, v = apply_rope(heads(q, N, H), table), apply_rope(heads(k, K, H), table), heads(v, K, H)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "out_proj", c.d_model)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Dbrx) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    fit = linear(x, w, "router.layer", c.n_experts)
    chosen, shares = softmax_routing(fit, c.n_experts_per_token, normalise=c.normalise is not None)
    return combine(experts(x, chosen, w.at("experts.mlp"), c), shares)


@step(Role.EXPERTS)
def experts(x: Array, chosen: Array, w: Weights, c: Dbrx) -> Array:
    """Each token through its chosen experts, one half gating the other: [T D], [T k] -> [T k F] -> [T k D]."""
    E, k, D, F = c.n_experts, c.n_experts_per_token, c.d_model, c.d_ff
    gate = expert_linear(x, w.stack("w1", E, F, D, used=k, below=True), chosen)
    wide = activation(str(c.activation.get("name", "silu")))(gate)
    wide = wide * expert_linear(x, w.stack("v1", E, F, D, used=k, below=True), chosen)
    return expert_linear(wide, w.stack("w2", E, F, D, used=k, below=True), chosen, transposed=True)
