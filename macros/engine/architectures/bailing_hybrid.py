"""Ling 3: Kimi Linear's layers with gates of full rank; latent attention with positions, and a gate for each head.

Sources: the code of transformers 5, which also gives the tensor names; for the width of queries and the gates of
smaller models, vLLM, model_executor/models/bailing_moe_v3.py.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..errors import Problem, shorten
from ..facts import Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Mixed,
    causal_mask,
    embed,
    feed_forward,
    heads,
    linear,
    logistic,
    positions,
    rms_norm,
    rope_table,
    sigmoid,
    softplus,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Interval, Positive, Raw, Size, Taps, activation, config, fixed, key
from .deepseek_v2 import compress_query, latents, queries, read_values_out
from .deepseek_v3 import mixture_of_stacked_experts
from .gguf_tables import DELTA_OF_KEYS
from .kimi_linear import LatentsAndDelta, kimi_delta_attention
from .otherwise import Otherwise, other_than
from .predicted import Module, Place, angles
from .rope_config import read_rope
from .tensor_layouts import CONVOLUTIONS, FORGET_GATE, FUSED

UNREAD = "no model of this type that is read here has it"
# Features that files of this type switch off, the last one by its inverse.
OFF = frozenset(
    """
    use_bias use_qkv_bias use_mla_nope use_kda_lora use_nGPT up_proj_norm value_norm scale_router_input
    expert_swiglu_limit_list share_expert_swiglu_limit_list no_kda_lora
""".split()
)
SHARE = "partial_rotary_factor"


@config
class Ling3(LatentsAndDelta):
    """Hyperparameters of Ling 3, in forward order."""

    # layers
    dense_layers: int = key("first_k_dense_replace", 2)
    layer_group_size: Interval = key("layer_group_size", 6)
    # linear attention
    head_dim: Interval = key("head_dim", 128)
    d_linear_head: Size = key("linear_head_dim", lambda c: c.head_dim)
    d_conv: Taps = key("linear_conv_kernel_dim", 4, also=("short_conv_kernel_size",))
    bounded_decay: bool = key("kda_safe_gate", True)
    least_log_decay: float = key("kda_lower_bound", -5.0)
    # attention
    rope_pairs: bool = fixed(True)
    gated: Literal["head_wise", "element_wise"] | None = key("gated_attention_proj_granularity_type", "head_wise")
    # experts
    n_expert_groups: Size = key("num_expert_group", 8, also=("n_group",))
    n_groups_kept: Size = key("topk_group", 4)
    routed_scale: Positive = key("routed_scaling_factor", 2.5)
    shared_width: int | None = key("moe_shared_expert_intermediate_size", None)

    rewritten = LatentsAndDelta.rewritten | OFF
    ignored = (LatentsAndDelta.ignored - {"head_dim"}) | frozenset(
        """
        rope_interleave qk_head_dim rotary_dim group_norm_size linear_silu num_kv_heads_for_linear_attn mtp_use_kda
        moe_router_enable_expert_bias score_function router_dtype max_window_layers output_dropout use_qk_norm
    """.split()
    )
    otherwise = (
        Otherwise(
            "gated_attention_proj_granularity_type",
            other_than("gated_attention_proj_granularity_type", "head_wise"),
            "transformers 5.24 gates each head anyway",
        ),
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """Raise `Problem` for a feature that no covered model of this type has."""
        raw = super().prepare(raw)
        for name in sorted(OFF):
            value: object = raw.pop(name, None)
            if (value is False) if name == "no_kda_lora" else value:
                raise Problem(f"{name} = {shorten(value)}", UNREAD)
        return raw

    def check(self) -> None:
        super().check()
        if self.shared_width not in (None, int(self.d_ff_expert)):
            raise Problem(f"moe_shared_expert_intermediate_size = {self.shared_width}", UNREAD)

    @property
    def rope(self):
        """The rotating share of a head does not apply to latent attention, whose positional part rotates as a whole."""
        return read_rope({k: v for k, v in self.rope_parameters.items() if k != SHARE}, theta=6e6)

    @property
    def types(self):
        return [
            "linear_attention" if (i + 1) % self.layer_group_size else "full_attention" for i in range(self.n_layers)
        ]

    def log_decay(self, x: Array, w: Weights) -> Array:
        """The log decay of each channel, bounded from below or not: [T D] -> [T N H]."""
        N, H = self.n_linear_heads, self.d_linear_head
        step_size = heads(linear(x, w, "f_proj", N * H) + w("dt_bias", N * H), N, H)
        rates = np.exp(w("A_log", N))[:, None]
        return (
            self.least_log_decay * logistic(rates * step_size) if self.bounded_decay else -rates * softplus(step_size)
        )

    def gate(self, x: Array, w: Weights) -> Array:
        """The gate of each head's output: [T D] -> [T N·H]."""
        return linear(x, w, "g_proj", self.n_linear_heads * self.d_linear_head)


GGUF = Gguf(
    "bailingmoe3",
    {
        **DELTA_OF_KEYS,
        "self_attn.forget_gate.A_log": "column:=ssm_a",
        "self_attn.forget_gate.f_proj": "ssm_f_a",
        "self_attn.g_proj": "heads:ssm_g_a/attn_gate",
    },
    is_by_layer=True,
)


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    table = angles(ids, cache, c.qk_rope_head_dim, c.rope)
    return layer(x, w, cache, c, Mixed("attention", "moe"), table)


MTP = Module(draft_layer, last_norm="final_layernorm")


@architecture(
    "bailing_hybrid",
    config=Ling3,
    spellings=(
        ("^model.word_embeddings.", "model.embed_tokens."),
        (".attention.", ".self_attn."),
        (".self_attn.dense.", ".self_attn.o_proj."),
        *FORGET_GATE,
        ("mlp.gate.expert_bias", "mlp.gate.e_score_correction_bias"),
    ),
    pieces=FUSED | CONVOLUTIONS,
    gguf=GGUF,
    predicts=MTP,
    classes={"bailing_hybrid": "BailingMoeV3ForCausalLM"},  # Edge0/Edge0-8B-A1B-preview; vLLM, models/registry.py
)
def forward(w: Weights, ids: Array, c: Ling3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.mixed, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Ling3, kind: Mixed, table: RopeTable) -> Array:
    """One block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    if kind.mixer == "linear":
        x = x + kimi_delta_attention(y, w.at("self_attn"), cache, c)
    else:
        x = x + attention(y, w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.feed_forward == "moe":
        return x + mixture_of_stacked_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Ling3, table: RopeTable, output: str = "o_proj") -> Array:
    """Let each token gather information from the latents, and gate it: [T D] -> [T N V] -> [T D]."""
    q, q_rope = queries(compress_query(x, w, c), w, c, table)
    latent, k_rope = latents(x, w, cache, c, table)
    values = read_values_out(q, q_rope, latent, k_rope, causal_mask(cache, q, latent, Full()), w, c)
    if c.gated == "head_wise":
        values = values * sigmoid(linear(x, w, "g_proj", c.n_heads))[:, :, None]
    elif c.gated == "element_wise":
        values = values * sigmoid(heads(linear(x, w, "g_proj", c.n_heads * c.v_head_dim), c.n_heads, c.v_head_dim))
    return linear(values.reshape(x.shape[0], c.n_heads * c.v_head_dim), w, output, c.d_model, bias=c.attention_bias)
