"""Qwen3-Next and Qwen3.5: linear attention by the gated delta rule in three layers of four, then gated attention.

Sources: arXiv 2412.06464 (the gated delta rule), Qwen/Qwen3-Next-80B-A3B-Instruct and Qwen/Qwen3.5-27B, config.json;
tensor names of Qwen3-Next as the published files, of Qwen3.5 as transformers 5's text model.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..facts import NAMED_EXPERTS, Gguf, Mlx, Peft, Vllm
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Mixed,
    Rope,
    apply_rope,
    attend,
    causal_conv,
    causal_mask,
    combine,
    embed,
    feed_forward,
    gated_delta_rule,
    gated_experts,
    heads,
    l2_norm,
    linear,
    packed_experts,
    positions,
    repeat_kv,
    rms_norm,
    rope_table,
    shared_experts,
    sigmoid,
    silu,
    softmax_routing,
    softplus,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Interval, Size, Taps, activation, config, expert_layers, fixed, key, mixers_of
from .gguf_tables import below
from .llama import Llama
from .predicted import Module, Place, angles
from .rope_config import read_rope
from .tasks import OLD_NAME
from .tensor_layouts import EXPERT, FUSED, PACKED

# FlashInfer's kernel for prompts (`_resolve_gdn_prefill_backend` in model_executor/layers/mamba/gdn), on CUDA 13.
VLLM = Vllm((0, 33), (9, 10, 12), 64)
STATE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


@config
class DeltaRule(Llama):
    """The common hyperparameters of models with a gated delta rule in most layers, in forward order."""

    # layers
    full_attention_interval: Interval = key("full_attention_interval", 4)
    layer_types: list[str] | None = key("layer_types", None)
    # linear attention
    n_linear_k_heads: Size = key("linear_num_key_heads")
    n_linear_v_heads: Size = key("linear_num_value_heads")
    d_linear_k_head: Size = key("linear_key_head_dim")
    d_linear_v_head: Size = key("linear_value_head_dim")
    output_gate: Literal["silu", "sigmoid"] = fixed("silu")
    # Queries, keys, values and gate in one matrix, cut by key head, or apart.
    one_matrix: bool = fixed(False)
    d_conv: Taps = key("linear_conv_kernel_dim")
    state_dtype: Literal["float32", "float16", "bfloat16"] = key("mamba_ssm_dtype", "float32")
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 4)
    d_head: Size = key("head_dim", 256)
    # feed-forward
    mlp_bias: bool = fixed(False)

    ignored = Llama.ignored | {"mlp_bias", "mlp_only_layers", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"}

    def check(self) -> None:
        super().check()
        self.must_divide("n_linear_k_heads", "n_linear_v_heads")

    @property
    def rope(self) -> Rope:
        return read_rope({"partial_rotary_factor": 0.25, **self.rope_parameters})

    @property
    def mixers(self) -> list[str]:
        """The token mixer of each layer, in order."""
        types = self.layer_types or [
            "full_attention" if (i + 1) % self.full_attention_interval == 0 else "linear_attention"
            for i in range(self.n_layers)
        ]
        return mixers_of(types, self.n_layers, "linear")

    @property
    def kinds(self) -> list[Mixed]:
        return [Mixed(mixer) for mixer in self.mixers]


@config
class Qwen35(DeltaRule):
    """Hyperparameters of Qwen3.5's text model, in forward order. A scale of a norm is stored as its distance from 1."""

    attention_gate: Literal[True] = key("attn_output_gate", True)
    gate_activation: Literal["swish", "silu"] = key("output_gate_type", "silu")


@config
class WithExperts(Qwen35):
    """The common hyperparameters of Qwen3-Next's mixture of experts and Qwen3.5's."""

    n_kv_heads: Size = key("num_key_value_heads", 2)
    n_experts: Size = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    d_ff_expert: Size = key("moe_intermediate_size")
    d_ff_shared: Count = key("shared_expert_intermediate_size")
    normalise: bool = fixed(True)
    # All experts' matrices in one stack, or each by itself.
    stacked: bool = fixed(True)

    def check(self) -> None:
        super().check()
        if self.n_experts:
            self.must_not_exceed("n_experts_per_token", "n_experts")


@config
class Qwen35MoE(WithExperts):
    """Qwen3.5's with experts in every layer."""

    d_ff: Size = fixed(0)

    ignored = Qwen35.ignored | {"intermediate_size", "norm_topk_prob", "decoder_sparse_step"}

    @property
    def kinds(self) -> list[Mixed]:
        return [Mixed(mixer, "moe") for mixer in self.mixers]


@config
class Qwen3Next(WithExperts):
    """Hyperparameters of Qwen3-Next, in forward order. d_ff is the inner width of the layers without experts."""

    n_experts: Count = key("num_experts", also=("num_local_experts",))
    normalise: bool = key("norm_topk_prob", True)
    decoder_sparse_step: Interval = key("decoder_sparse_step", 1)
    mlp_only_layers: list[int] = key("mlp_only_layers", lambda c: [])

    one_matrix: bool = fixed(True)
    stacked: bool = fixed(False)

    @property
    def kinds(self) -> list[Mixed]:
        moe = expert_layers(self.n_layers, self.n_experts, self.decoder_sparse_step, self.mlp_only_layers)
        return [Mixed(mixer, "moe" if has_experts else "dense") for mixer, has_experts in zip(self.mixers, moe)]


GATED_DELTA = below(
    "linear_attn",
    {
        "in_proj_qkv": "attn_qkv",
        "in_proj_z": "attn_gate",
        "in_proj_qkvz": "gate:attn_qkv/attn_gate",
        "in_proj_ba": "ssm_ba",
        "in_proj_b": "ssm_beta",
        "in_proj_a": "ssm_alpha",
        "conv1d": "taps:ssm_conv1d",
        "A_log": "=ssm_a",
        "dt_bias": "=ssm_dt.bias",
        "norm": "ssm_norm",
        "out_proj": "ssm_out",
    },
) | {"post_attention_layernorm": "post_attention_norm"}


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    kind = Mixed("attention", "moe" if isinstance(c, WithExperts) and c.n_experts else "dense")
    return layer(x, w, cache, c, kind, angles(ids, cache, c.d_head, c.rope))


MTP = Module(
    draft_layer,
    "mtp",
    "pre_fc_norm_embedding",
    "pre_fc_norm_hidden",
    "fc",
    "layers.{k}",
    "norm",
    offset=1,
    is_one=True,
    usual=1,
)


@architecture(
    "qwen3_next",
    config=Qwen3Next,
    fused=FUSED,
    gguf=Gguf("qwen3next", GATED_DELTA),
    heads=OLD_NAME,
    predicts=MTP,
    peft=Peft(stacked=NAMED_EXPERTS),
    mlx=Mlx(in_8_bits=("mlp.gate", "mlp.shared_expert_gate")),
    vllm=VLLM,
)
@architecture(
    "qwen3_5_moe_text",
    "qwen3_5_moe",
    config=Qwen35MoE,
    pieces=FUSED,
    gguf=Gguf("qwen35moe", GATED_DELTA),
    predicts=MTP,
    mlx=Mlx(in_8_bits=("mlp.gate", "mlp.shared_expert_gate")),
    vllm=VLLM,
)
@architecture("qwen3_5_text", "qwen3_5", config=Qwen35, gguf=Gguf("qwen35", GATED_DELTA), predicts=MTP, vllm=VLLM)
def forward(w: Weights, ids: Array, c: Qwen35, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps, offset=1)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Qwen35, kind: Mixed, table: RopeTable) -> Array:
    """One block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps, offset=1)
    if kind.mixer == "linear":
        x = x + gated_delta_net(y, w.at("linear_attn"), cache, c)
    else:
        x = x + attention(y, w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps, offset=1)
    if kind.feed_forward == "moe":
        assert isinstance(c, WithExperts)
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Qwen35, table: RopeTable) -> Array:
    """Let each token gather information from all before it, and gate each head's output: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q, gate = np.split(heads(linear(x, w, "q_proj", N * 2 * H, bias=c.attention_bias), N, 2 * H), 2, axis=-1)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = rms_norm(q, w, "q_norm", c.norm_eps, offset=1), rms_norm(k, w, "k_norm", c.norm_eps, offset=1)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5)
    return linear(mixed * sigmoid(gate.reshape(x.shape[0], N * H)), w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.GATED_DELTA_NET)
def gated_delta_net(x: Array, w: Weights, cache: KVCache, c: DeltaRule) -> Array:
    """Let each token read from a memory of fixed size, and correct it: [T D] -> [T N H] -> [T D].

    The memory is kept in float32, as transformers and the vendor's `mamba_ssm_dtype` have it.
    """
    K, N, H_k, H_v = c.n_linear_k_heads, c.n_linear_v_heads, c.d_linear_k_head, c.d_linear_v_head
    qkv, z, b, a = project(x, w, c)
    qkv = activation(c.activation)(causal_conv(qkv, w, cache, "conv1d", c.d_conv, bias=False))
    q, k, v = np.split(qkv, [K * H_k, 2 * K * H_k], axis=-1)
    q, k = (repeat_kv(l2_norm(heads(part, K, H_k)), N) for part in (q, k))
    keep = np.exp(-np.exp(w("A_log", N)) * softplus(a + w("dt_bias", N)))
    y = gated_delta_rule(q * H_k**-0.5, k, heads(v, N, H_v), keep, sigmoid(b), cache, STATE_BYTES[c.state_dtype])
    gate = sigmoid if c.output_gate == "sigmoid" else silu
    y = rms_norm(y, w, "norm", c.norm_eps) * gate(heads(z, N, H_v))
    return linear(y.reshape(x.shape[0], N * H_v), w, "out_proj", c.d_model)


def project(x: Array, w: Weights, c: DeltaRule) -> tuple[Array, Array, Array, Array]:
    """Queries, keys and values side by side, gate, strength and decay: [T D] -> [T C], [T N·H_v], [T N], [T N].

    C is 2·K·H_k + N·H_v.
    """
    K, N, H_k, H_v = c.n_linear_k_heads, c.n_linear_v_heads, c.d_linear_k_head, c.d_linear_v_head
    if not c.one_matrix:
        return (
            linear(x, w, "in_proj_qkv", 2 * K * H_k + N * H_v),
            linear(x, w, "in_proj_z", N * H_v),
            linear(x, w, "in_proj_b", N),
            linear(x, w, "in_proj_a", N),
        )
    T, shared = x.shape[0], N // K
    qkvz = heads(linear(x, w, "in_proj_qkvz", 2 * K * H_k + 2 * N * H_v), K, 2 * H_k + 2 * shared * H_v)
    q, k, v, z = np.split(qkvz, [H_k, 2 * H_k, 2 * H_k + shared * H_v], axis=-1)
    b, a = np.split(heads(linear(x, w, "in_proj_ba", 2 * N), K, 2 * shared), 2, axis=-1)
    qkv = np.concatenate([q.reshape(T, K * H_k), k.reshape(T, K * H_k), v.reshape(T, N * H_v)], axis=-1)
    return qkv, z.reshape(T, N * H_v), b.reshape(T, N), a.reshape(T, N)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: WithExperts) -> Array:
    """A few experts chosen for each token, and a shared one with a gate: [T D] -> [T k D] -> [T D]."""
    act = activation(c.activation)
    chosen, shares = softmax_routing(linear(x, w, "gate", c.n_experts), c.n_experts_per_token, normalise=c.normalise)
    if c.stacked:
        routed = combine(packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff_expert, act), shares)
    else:
        routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act), shares)
    shared = shared_experts(x, w.at("shared_expert"), c.d_ff_shared, act)
    return routed + sigmoid(linear(x, w, "shared_expert_gate", 1)) * shared
