"""Kimi Linear and Kimi K3: three layers of linear attention that forgets channel by channel to one of latent attention.

Kimi K3 gates the latent attention, has experts in a narrower space, and reads averages over the depth where a residual
sum stands elsewhere. Sources: arXiv 2510.26692 (Kimi Linear), moonshotai/Kimi-Linear-48B-A3B-Instruct, config.json;
arXiv 2607.24653 (Kimi K3), NVIDIA-NeMo/Automodel on GitHub, components/models/kimi_k3; tensor names as transformers 5
(the published files have `block_sparse_moe.` for `mlp.`, and each expert by itself).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, cast

import numpy as np

from ..errors import Problem, shorten
from ..facts import Gguf, Vllm
from ..interface import Array, KVCache, Weights
from ..ops import (
    Full,
    Mixed,
    causal_conv,
    causal_mask,
    combine,
    embed,
    expert_linear,
    feed_forward,
    gated_delta_rule,
    heads,
    l2_norm,
    linear,
    rms_norm,
    sigmoid,
    soft_cap,
    softmax,
    softplus,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Count, Positive, Raw, Size, Taps, activation, config, fixed, key, mixers_of
from .deepseek_v2 import attention, check_groups, compress_query, latents, queries, read_values_out
from .deepseek_v3 import DeepSeekV3, mixture_of_stacked_experts, routing
from .gguf_tables import DELTA_OF_KEYS
from .predicted import Module, Place
from .tensor_layouts import CONVOLUTIONS, FORGET_GATE, FUSED, NUMBERED, PACKED


@config
class LatentsAndDelta(DeepSeekV3):
    """The common hyperparameters of models with latent attention and Kimi Delta Attention."""

    # layers
    layer_types: list[str] | None = key("layer_types", None)
    # attention
    q_lora_rank: Size | None = key("q_lora_rank", None)
    # linear attention
    n_linear_heads: Size = key("linear_num_heads", lambda c: c.n_heads)
    d_linear_head: Size = key("linear_head_dim", 128)
    d_conv: Taps = key("linear_conv_kernel_dim", 4)
    # experts
    n_experts: Size = key("num_experts", also=("num_local_experts", "n_routed_experts"))
    n_experts_per_token: Size = key("num_experts_per_token", also=("num_experts_per_tok",))
    n_shared_experts: Count = key("num_shared_experts", 1, also=("n_shared_experts",))
    n_expert_groups: Size = key("num_expert_group", 1, also=("n_group",))
    normalise: bool = key("moe_renormalize", True, also=("norm_topk_prob",))
    # head
    tied: bool = fixed(False)

    ignored = DeepSeekV3.ignored | {"tie_word_embeddings", "head_dim", "mtp_loss_scaling_factor"}

    @property
    def types(self) -> Sequence[str]:
        """The kind of attention of each layer, in order, if `layer_types` does not give it."""
        raise NotImplementedError

    @property
    def mixer_activation(self) -> str:
        """The activation function after the convolutions of linear attention."""
        return self.activation

    @property
    def mixed(self) -> Sequence[Mixed]:
        """In order: the token mixer, and whether a layer has experts."""
        mixers = mixers_of(self.layer_types or self.types, self.n_layers, "linear")
        return [Mixed(mixer, "moe" if kind.moe else "dense") for mixer, kind in zip(mixers, self.kinds)]


class Deep(Mixed, frozen=True):
    """A layer that reads averages over the depth: the number of earlier blocks that it reads, and whether it begins
    one."""

    blocks: int = 0
    begins: bool = False

    def __str__(self) -> str:
        return f"{super().__str__()}, {'begins block' if self.begins else 'block'} {self.blocks}"


@config
class KimiLinear(LatentsAndDelta):
    """Hyperparameters of Kimi Linear and Kimi K3, in forward order."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    dense_layers: int = key("first_k_dense_replace", 1)
    block_layers: int | None = key("attn_res_block_size", None)
    # attention
    without_rope: Literal[True] = key("mla_use_nope", True)
    output_gate: bool = key("mla_use_output_gate", False)
    # linear attention
    whole_gate: bool = key("linear_use_full_rank_gate", False)
    decay_bound: float | None = key("linear_lower_bound", None)
    # feed-forward
    gate_cap: Positive = key("activation_situ_beta", 1.0)
    up_cap: Positive | None = key("activation_situ_linear_beta", None)
    # experts
    d_latent: Size | None = key("routed_expert_hidden_size", None)
    latent_norm: bool = key("latent_moe_use_norm", False)
    n_groups_kept: Size = key("topk_group", 1)
    routed_scale: Positive = key("routed_scaling_factor", 2.446)
    scoring: Literal["sigmoid"] = key("moe_router_activation_func", "sigmoid")

    rewritten = LatentsAndDelta.rewritten | {"linear_attn_config"}
    ignored = LatentsAndDelta.ignored | {
        "use_grouped_topk",
        "kda_mode",
        "kda_unpad_inputs",
        "kda_use_fused_gate",
        "kda_use_qk_l2norm_in_kernel",
    }

    def check(self) -> None:
        check_groups(self)
        if self.activation != "situ":
            activation(self.activation)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys of `linear_attn_config` in the spelling of transformers; it counts layers from 1."""
        raw, table = super().prepare(raw), raw.get("linear_attn_config")
        if table is None:
            return raw
        if not isinstance(table, Mapping):
            raise Problem(f"linear_attn_config = {shorten(table)}: expected a table of keys", "correct the value")
        inside = cast("Raw", table)
        spellings = {
            "linear_head_dim": "head_dim",
            "linear_num_heads": "num_heads",
            "linear_conv_kernel_dim": "short_conv_kernel_size",
            "linear_use_full_rank_gate": "use_full_rank_gate",
            "linear_lower_bound": "gate_lower_bound",
        }
        raw |= {ours: inside[theirs] for ours, theirs in spellings.items() if inside.get(theirs) is not None}
        if raw.get("layer_types") is None and inside.get("full_attn_layers") is not None:
            raw["layer_types"] = layers_by_number(inside, raw.get("num_hidden_layers"))
        return raw

    @property
    def types(self):
        return ["full_attention" if i and i % 4 == 0 else "linear_attention" for i in range(self.n_layers)]

    @property
    def mixed(self) -> Sequence[Mixed]:
        every = self.block_layers
        if every is None:
            return super().mixed
        if every < 1:
            raise Problem(f"attn_res_block_size = {every}: expected at least 1", "correct the value")
        return [
            Deep(kind.mixer, kind.feed_forward, (i + every - 1) // every, i % every == 0)
            for i, kind in enumerate(super().mixed)
        ]

    @property
    def scale(self) -> float:
        return (self.qk_nope_head_dim + self.qk_rope_head_dim) ** -0.5

    @property
    def mixer_activation(self) -> str:
        return "silu" if self.activation == "situ" else self.activation

    def log_decay(self, x: Array, w: Weights) -> Array:
        """The log decay of each channel, from two low-rank matrices: [T D] -> [T H] -> [T N H]."""
        N, H = self.n_linear_heads, self.d_linear_head
        step_size = linear(linear(x, w, "f_a_proj", H), w, "f_b_proj", N * H) + w("dt_bias", N * H)
        rates = np.exp(w("A_log", N)[:, None] if self.whole_gate else w("A_log", 1, 1, N, 1)[0])
        if self.decay_bound is not None:
            return sigmoid(heads(step_size, N, H) * rates) * self.decay_bound
        return -rates * softplus(heads(step_size, N, H))

    def gate(self, x: Array, w: Weights) -> Array:
        """The gate of each head's output, in Kimi Linear from two matrices of low rank: [T D] -> [T H] -> [T N·H]."""
        if self.whole_gate:
            return linear(x, w, "g_proj", self.n_linear_heads * self.d_linear_head)
        return linear(
            linear(x, w, "g_a_proj", self.d_linear_head), w, "g_b_proj", self.n_linear_heads * self.d_linear_head
        )


def layers_by_number(table: Raw, n_layers: object) -> list[str]:
    """`layer_types` from the numbers of the layers of each kind, counted from 1. Raises `Problem` for a gap."""
    names = {"full_attn_layers": "full_attention", "kda_layers": "linear_attention"}
    numbered: dict[object, str] = {}
    for name, kind in names.items():
        listed = table.get(name)
        if not isinstance(listed, (list, tuple)):
            raise Problem(
                f"linear_attn_config.{name} = {shorten(listed)}: expected a list of layers", "correct the value"
            )
        numbered |= dict.fromkeys(cast("Sequence[object]", listed), kind)
    if set(numbered) != set(range(1, len(numbered) + 1)) or len(numbered) != n_layers:
        raise Problem(
            f"linear_attn_config names {len(numbered)} layers, and num_hidden_layers = {shorten(n_layers)}",
            "name each layer once, counted from 1",
        )
    return [numbered[number] for number in sorted(range(1, len(numbered) + 1))]


GGUF = Gguf(
    "kimi-linear",
    {
        **DELTA_OF_KEYS,
        "self_attn.forget_gate.f_a_proj": "ssm_f_a",
        "self_attn.forget_gate.f_b_proj": "ssm_f_b",
        "self_attn.g_a_proj": "ssm_g_a",
        "self_attn.g_b_proj": "ssm_g_b",
    },
    is_by_layer=True,
)


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    return layer(x, w, cache, c, Mixed("attention", "moe"))


MTP = Module(draft_layer)


@architecture(
    "kimi_linear",
    config=KimiLinear,
    spellings=(*FORGET_GATE, (".block_sparse_moe.", ".mlp."), *NUMBERED),
    pieces=FUSED | CONVOLUTIONS,
    gguf=GGUF,
    predicts=MTP,
    # of Kimi K3 (`resolve_kda_prefill_backend` in vllm/models/kimi_k3/nvidia/kda.py): FlashKDA
    vllm=Vllm((0, 29), (9, 10, 12), needs=("linear_attn_config", "gate_lower_bound")),
)
def forward(w: Weights, ids: Array, c: KimiLinear, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x, blocks = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model), list[Array]()
    for kind, w_layer, cache_layer in w.layers("model.layers", c.mixed, cache):
        if isinstance(kind, Deep):
            x, blocks = deep_layer(x, w_layer, cache_layer, c, kind, blocks)
        else:
            x = layer(x, w_layer, cache_layer, c, kind)
    if c.block_layers is not None:
        x = average_over_depth([*blocks, x], w, "model.output_attn_res", c.norm_eps)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: KimiLinear, kind: Mixed) -> Array:
    """One block: [T D] -> [T D]."""
    x = x + mixer(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind)
    return x + wide_part(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c, kind)


@step(Role.LAYER)
def deep_layer(
    x: Array, w: Weights, cache: KVCache, c: KimiLinear, kind: Deep, blocks: list[Array]
) -> tuple[Array, list[Array]]:
    """One block, whose parts read averages over the depth: [T D] -> [T D], and the beginnings of blocks so far."""
    average = average_over_depth([*blocks, x], w, "self_attention_res", c.norm_eps)
    y = mixer(rms_norm(average, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind)
    if kind.begins:
        blocks = [*blocks, x]
    else:
        y = x + y
    average = average_over_depth([*blocks, y], w, "mlp_res", c.norm_eps)
    return y + wide_part(rms_norm(average, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c, kind), blocks


@step(Role.ATTENTION_RESIDUALS)
def average_over_depth(sources: list[Array], w: Weights, name: str, eps: float, norm: str = "_norm.weight") -> Array:
    """The average of the sums of blocks of layers, by the fit of each to a trained query: [T D] each -> [T D].

    `norm`: how the name of the norm's scale ends.
    """
    D = sources[0].shape[1]
    x = np.stack(sources, axis=1)
    keys = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    query = w(f"{name}{norm}", D) * w(f"{name}_proj.weight", 1, D)[0]
    shares = softmax(np.einsum("tmd,d->tm", keys, query, optimize=True))
    return np.einsum("tm,tmd->td", shares, x, optimize=True)


def mixer(x: Array, w: Weights, cache: KVCache, c: KimiLinear, kind: Mixed) -> Array:
    """Linear or latent attention: [T D] -> [T D]."""
    if kind.mixer == "linear":
        return kimi_delta_attention(x, w, cache, c)
    return gated_latent_attention(x, w, cache, c) if c.output_gate else attention(x, w, cache, c, None)


@step(Role.ATTENTION)
def gated_latent_attention(x: Array, w: Weights, cache: KVCache, c: KimiLinear) -> Array:
    """Let each token gather information from those before it, kept as latents, through a gate: [T D] -> [T D]."""
    q, q_rope = queries(compress_query(x, w, c), w, c, None)
    latent, k_rope = latents(x, w, cache, c, None)
    values = read_values_out(q, q_rope, latent, k_rope, causal_mask(cache, q, latent, Full()), w, c)
    width = c.n_heads * c.v_head_dim
    gate = sigmoid(linear(x, w, "g_proj", width))
    return linear(values.reshape(x.shape[0], width) * gate, w, "o_proj", c.d_model, bias=c.attention_bias)


def wide_part(x: Array, w: Weights, c: KimiLinear, kind: Mixed) -> Array:
    """A mixture of experts, or a plain feed-forward network: [T D] -> [T D]."""
    if kind.feed_forward == "moe":
        is_usual = c.d_latent is None and c.activation != "situ"
        return mixture_of_stacked_experts(x, w, c) if is_usual else mixture_of_narrow_experts(x, w, c)
    return network(x, w, c, c.d_ff)


def network(x: Array, w: Weights, c: KimiLinear, d_ff: int) -> Array:
    """A feed-forward network: [T D] -> [T F] -> [T D]."""
    if c.activation == "situ":
        return bounded_feed_forward(x, w, c, d_ff)
    return feed_forward(x, w, d_ff, activation(c.activation))


@step(Role.FEED_FORWARD)
def bounded_feed_forward(x: Array, w: Weights, c: KimiLinear, d_ff: int) -> Array:
    """Process each token separately, in a wider space, gate and up values bounded: [T D] -> [T F] -> [T D]."""
    gate, up = linear(x, w, "gate_proj", d_ff), linear(x, w, "up_proj", d_ff)
    return linear(gated(gate, up, c), w, "down_proj", x.shape[-1])


def gated(gate: Array, up: Array, c: KimiLinear) -> Array:
    """One half through the activation function, times the other: [… F], [… F] -> [… F]."""
    if c.activation != "situ":
        return activation(c.activation)(gate) * up
    return soft_cap(gate, c.gate_cap) * sigmoid(gate) * (soft_cap(up, c.up_cap) if c.up_cap else up)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_narrow_experts(x: Array, w: Weights, c: KimiLinear) -> Array:
    """Experts in a narrower space, chosen by the whole vector, and the shared ones: [T D] -> [T L] -> [T k L] -> [T D].

    The stored bias balances the experts' load; the routing weights exclude it.
    """
    chosen, shares = routing(x, w.buffer("gate.e_score_correction_bias", c.n_experts), w, c)
    narrow = linear(x, w, "routed_expert_down_proj", c.d_latent) if c.d_latent else x
    routed = combine(narrow_experts(narrow, chosen, w, c), shares)
    if c.d_latent:
        routed = rms_norm(routed, w, "routed_expert_norm", c.norm_eps) if c.latent_norm else routed
        routed = linear(routed, w, "routed_expert_up_proj", c.d_model)
    return routed + shared(x, w.at("shared_experts"), c)


@step(Role.PACKED_EXPERTS)
def narrow_experts(x: Array, chosen: Array, w: Weights, c: KimiLinear) -> Array:
    """Each token through its chosen experts, gate and up in one matrix: [T L], [T k] -> [T k F] -> [T k L]."""
    E, k, L, F = c.n_experts, c.n_experts_per_token, x.shape[-1], c.d_ff_expert
    gate, up = np.split(expert_linear(x, w.stack(PACKED[0], E, 2 * F, L, used=k), chosen), 2, axis=-1)
    return expert_linear(gated(gate, up, c), w.stack(PACKED[1], E, L, F, used=k), chosen)


@step(Role.SHARED_EXPERTS)
def shared(x: Array, w: Weights, c: KimiLinear) -> Array:
    """The experts that every token passes through, side by side as one: [T D] -> [T F] -> [T D]."""
    return network(x, w, c, c.n_shared_experts * c.d_ff_expert)


class DeltaAttention(Protocol):
    """A config of Kimi Delta Attention."""

    @property
    def d_model(self) -> int: ...
    @property
    def n_linear_heads(self) -> int: ...
    @property
    def d_linear_head(self) -> int: ...
    @property
    def d_conv(self) -> int: ...
    @property
    def mixer_activation(self) -> str: ...
    @property
    def norm_eps(self) -> float: ...

    def log_decay(self, x: Array, w: Weights) -> Array: ...
    def gate(self, x: Array, w: Weights) -> Array: ...


@step(Role.KIMI_DELTA_ATTENTION)
def kimi_delta_attention(
    x: Array, w: Weights, cache: KVCache, c: DeltaAttention, strongest: float | None = None
) -> Array:
    """Let each token read from a memory that forgets by channel and corrects itself: [T D] -> [T N H] -> [T D].

    `strongest` bounds the correction; above 1 an eigenvalue of the memory's step can be negative. The memory is kept in
    float32, as in transformers (arXiv 2510.26692, 3).
    """
    T, N, H = x.shape[0], c.n_linear_heads, c.d_linear_head
    qkv = np.concatenate([linear(x, w, f"{part}_proj", N * H) for part in ("q", "k", "v")], axis=-1)
    qkv = activation(c.mixer_activation)(causal_conv(qkv, w, cache, "conv1d", c.d_conv, bias=False))
    q, k, v = (heads(part, N, H) for part in np.split(qkv, 3, axis=-1))
    keep = np.exp(c.log_decay(x, w.at("forget_gate")))
    strength = sigmoid(linear(x, w, "b_proj", N))
    strength = strength if strongest is None else strength * strongest
    y = gated_delta_rule(l2_norm(q) * H**-0.5, l2_norm(k), v, keep, strength, cache)
    y = rms_norm(y, w, "o_norm", c.norm_eps) * sigmoid(heads(c.gate(x, w), N, H))
    return linear(y.reshape(T, N * H), w, "o_proj", c.d_model)
