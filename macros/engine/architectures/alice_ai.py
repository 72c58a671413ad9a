"""Alice AI: Qwen3-Next's layers with Kimi Delta Attention in three of four, averages over the depth in place of the
residual sum, and experts chosen by a sigmoid.

Source: yandex/AliceAI-Foundation-80B-A3B-Base by vLLM 0.33, model_executor/models/alice_ai.py; tensor names as Kimi
Linear's, where that has the part, and as published otherwise.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Mixed,
    Rope,
    combine,
    embed,
    heads,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    sigmoid,
    softplus,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Interval, Size, activation, config, fixed, key
from .deepseek_v3 import routing
from .kimi_linear import Deep, average_over_depth, kimi_delta_attention
from .predicted import Module, Place, angles
from .qwen3_next import WithExperts, attention
from .rope_config import read_rope
from .tensor_layouts import FUSED, PACKED


@config
class AliceAI(WithExperts):
    """Hyperparameters of Alice AI, in forward order."""

    # layers
    block_layers: Interval = key("block_attn_res_block_size")
    # linear attention
    negative: Literal[False] = key("kda_allow_negative_eigenvalues", False)
    # attention
    attention_bias: bool = fixed(False)
    # feed-forward
    d_ff: Size = fixed(0)
    activation: Literal["silu"] = key("hidden_act", "silu")
    # experts
    scoring: Literal["sigmoid"] = key("router_score_function", "sigmoid")
    balanced: Literal[True] = key("router_bias_correction", True)
    normalise: bool = key("norm_topk_prob", True)
    n_expert_groups: int = fixed(1)
    n_groups_kept: int = fixed(1)
    routed_scale: float = fixed(1.0)
    # head
    tied: Literal[False] = key("tie_word_embeddings", False)

    ignored = WithExperts.ignored | {
        "attention_bias",
        "intermediate_size",
        "decoder_sparse_step",
        "number_of_conv_states",
        "num_nextn_predict_layers",
    }

    def check(self) -> None:
        super().check()
        for of_keys, of_values in (("n_linear_k_heads", "n_linear_v_heads"), ("d_linear_k_head", "d_linear_v_head")):
            if getattr(self, of_keys) != getattr(self, of_values):
                raise Problem(
                    f"{self.key_of(of_values)} = {self.size(of_values)}, and {self.key_of(of_keys)} = "
                    f"{self.size(of_keys)}: this linear attention has the same of both",
                    "correct one of the two",
                )

    @property
    def rope(self) -> Rope:
        return read_rope({"partial_rotary_factor": 0.25, **self.rope_parameters}, 1e6)

    @property
    def kinds(self) -> list[Mixed]:
        return [*self.deep]

    @property
    def deep(self) -> list[Deep]:
        """In order: each layer's parts, and the blocks of layers that it reads."""
        every = int(self.block_layers)
        return [Deep(mixer, "moe", (i + every - 1) // every, i % every == 0) for i, mixer in enumerate(self.mixers)]

    # what Kimi Delta Attention reads

    @property
    def n_linear_heads(self) -> int:
        return self.n_linear_k_heads

    @property
    def d_linear_head(self) -> int:
        return self.d_linear_k_head

    @property
    def mixer_activation(self) -> str:
        """The activation function after the convolutions."""
        return "silu"

    def log_decay(self, x: Array, w: Weights) -> Array:
        """The log decay of each channel, from two low-rank matrices: [T D] -> [T H] -> [T N H]."""
        N, H = self.n_linear_k_heads, self.d_linear_k_head
        step_size = linear(linear(x, w, "f_a_proj", H), w, "f_b_proj", N * H) + w("dt_bias", N * H)
        return -np.exp(w("A_log", N))[:, None] * softplus(heads(step_size, N, H))

    def gate(self, x: Array, w: Weights) -> Array:
        """The gate of each head's output, from two matrices of low rank: [T D] -> [T H] -> [T N·H]."""
        N, H = self.n_linear_k_heads, self.d_linear_k_head
        return linear(linear(x, w, "g_a_proj", H), w, "g_b_proj", N * H)


SPELLINGS = (
    ("linear_attn.a_log_bias", "linear_attn.forget_gate.A_log"),
    *((f"linear_attn.{name}", f"linear_attn.forget_gate.{name}") for name in ("f_a_proj.", "f_b_proj.", "dt_bias")),
)
PARTS = {"linear_attn.conv1d.weight": tuple(f"linear_attn.{part}_conv1d.weight" for part in "qkv")}


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps, offset=1)
    x = x + attention(y, w.at("self_attn"), cache, c, angles(ids, cache, c.d_head, c.rope))
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps, offset=1)
    return x + mixture_of_experts(y, w.at("mlp"), c)


MTP = Module(
    draft_layer, "mtp", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "fc", "layers.{k}", "norm", offset=1, is_one=True
)


@architecture("alice_ai", config=AliceAI, spellings=SPELLINGS, pieces=FUSED | PARTS, predicts=MTP)
def forward(w: Weights, ids: Array, c: AliceAI, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x, blocks = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model), list[Array]()
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.deep, cache):
        x, blocks = layer(x, w_layer, cache_layer, c, kind, blocks, table)
    x = averaged([*blocks, x], w, "model.attnres_final.res", c)
    x = rms_norm(x, w, "model.norm", c.norm_eps, offset=1)
    return unembed(x, w, "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(
    x: Array, w: Weights, cache: KVCache, c: AliceAI, kind: Deep, blocks: list[Array], table: RopeTable
) -> tuple[Array, list[Array]]:
    """One block, whose parts read averages over the depth: [T D] -> [T D], and the sums of blocks so far."""
    average = averaged([*blocks, x], w, "attn_res", c) if kind.blocks else x
    y = mixer(rms_norm(average, w, "input_layernorm", c.norm_eps, offset=1), w, cache, c, kind, table)
    if kind.begins:
        blocks = [*blocks, x]
    else:
        y = x + y
    average = averaged([*blocks, y], w, "mlp_res", c)
    average = rms_norm(average, w, "post_attention_layernorm", c.norm_eps, offset=1)
    return y + mixture_of_experts(average, w.at("mlp"), c), blocks


def averaged(sources: list[Array], w: Weights, name: str, c: AliceAI) -> Array:
    """The average of the sums of blocks of layers, by the fit of each to a trained query: [T D] each -> [T D]."""
    return average_over_depth(sources, w, name, c.norm_eps, norm="_norm_weight")


def mixer(x: Array, w: Weights, cache: KVCache, c: AliceAI, kind: Deep, table: RopeTable) -> Array:
    """Linear or gated attention: [T D] -> [T D]."""
    if kind.mixer == "linear":
        return kimi_delta_attention(x, w.at("linear_attn"), cache, c)
    return attention(x, w.at("self_attn"), cache, c, table)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: AliceAI) -> Array:
    """A few experts chosen for each token, and a shared one with a gate: [T D] -> [T k D] -> [T D].

    The stored bias balances the experts' load; the routing weights exclude it.
    """
    act = activation(c.activation)
    chosen, shares = routing(x, w.buffer("gate.e_score_correction_bias", c.n_experts), w, c)
    routed = combine(packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff_expert, act), shares)
    shared = shared_experts(x, w.at("shared_expert"), c.d_ff_shared, act)
    return routed + sigmoid(linear(x, w, "shared_expert_gate", 1)) * shared
