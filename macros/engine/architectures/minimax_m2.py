"""MiniMax-M2: every layer a mixture of experts chosen by separate scores, partly rotated heads.

Source: MiniMaxAI/MiniMax-M2, config.json and modeling file; tensor names as the published files.
"""

from __future__ import annotations

from typing import Literal

from ..errors import Problem
from ..facts import W_EXPERTS, Gguf, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Rope,
    combine,
    embed,
    gated_experts,
    linear,
    positions,
    rms_norm,
    rope_table,
    routing_weights,
    sigmoid_scores,
    top_k,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Size, activation, config, fixed, key
from .llama import Llama
from .olmo2 import attention
from .rope_config import read_rope
from .tensor_layouts import MIXTRAL_EXPERT, MIXTRAL_FUSED


@config
class MiniMaxM2(Llama):
    """Hyperparameters of MiniMax-M2, in forward order. d_ff is the inner width of one expert."""

    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)
    attention_bias: bool = fixed(False)
    d_rotary: Size | None = key("rotary_dim", None)
    n_experts: Size = key("num_local_experts", also=("num_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    qk_norm: Literal[True] = key("use_qk_norm", True)
    qk_norm_type: Literal["per_layer"] = key("qk_norm_type", "per_layer")
    routing_bias: Literal[True] = key("use_routing_bias", True)
    scoring: Literal["sigmoid"] = key("scoring_func", "sigmoid")

    ignored = frozenset(
        {
            "attention_bias",
            "mlp_bias",
            "use_mtp",
            "num_mtp_modules",
            "mtp_transformer_layers",
            "attn_type_list",
            "layernorm_full_attention_beta",
            "layernorm_linear_attention_beta",
            "layernorm_mlp_beta",
            "shared_moe_mode",
            "shared_intermediate_size",
            "sliding_window",
        }
    )

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")
        if self.d_rotary and self.d_rotary > self.d_head:
            raise Problem(
                f"rotary_dim = {int(self.d_rotary)} exceeds head_dim = {int(self.d_head)}", "correct one of the two"
            )

    @property
    def rope(self) -> Rope:
        partial = {"partial_rotary_factor": int(self.d_rotary) / int(self.d_head)} if self.d_rotary else {}
        return read_rope(partial | self.rope_parameters, theta=5e6)


@architecture(
    "minimax_m2",
    config=MiniMaxM2,
    fused=MIXTRAL_FUSED | {"mlp.e_score_correction_bias": ("block_sparse_moe.e_score_correction_bias",)},
    kept={"block_sparse_moe.gate.weight": "float32"},
    gguf=Gguf("minimax-m2"),
    peft=Peft(stacked=W_EXPERTS),
)
def forward(w: Weights, ids: Array, c: MiniMaxM2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: MiniMaxM2, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + mixture_of_experts(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("block_sparse_moe"), c)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: MiniMaxM2) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D].

    The stored bias balances the experts' load; the routing weights exclude it.
    """
    fit = sigmoid_scores(linear(x, w, "gate", c.n_experts))
    chosen = top_k(fit + w.buffer("e_score_correction_bias", c.n_experts), c.n_experts_per_token)
    shares = routing_weights(fit, chosen, normalise=True)
    return combine(gated_experts(x, chosen, w, MIXTRAL_EXPERT, c.n_experts, c.d_ff, activation(c.activation)), shares)
