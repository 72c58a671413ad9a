"""Kimi Linear: three layers of linear attention that forgets channel by channel to one of latent attention; experts.

Sources: arXiv 2510.26692 (Kimi Linear), moonshotai/Kimi-Linear-48B-A3B-Instruct, config.json; tensor names as
transformers 5 (the published files have `block_sparse_moe.` for `mlp.`, and each expert by itself).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, cast

import numpy as np

from ..errors import Problem, shorten
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Mixed,
    causal_conv,
    embed,
    feed_forward,
    gated_delta_rule,
    heads,
    l2_norm,
    linear,
    rms_norm,
    sigmoid,
    softplus,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Count, Positive, Raw, Size, Taps, activation, config, fixed, key, mixers_of
from .deepseek_v2 import attention
from .deepseek_v3 import DeepSeekV3, mixture_of_stacked_experts
from .tensor_layouts import CONVOLUTIONS, FORGET_GATE, FUSED, NUMBERED


@config
class LatentsAndDelta(DeepSeekV3):
    """The common hyperparameters of models with latent attention and Kimi Delta Attention."""

    # layers
    layer_types: list[str] | None = key("layer_types", None)
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
        """The kind of attention of each layer, in order, where `layer_types` does not say it."""
        raise NotImplementedError

    @property
    def mixed(self) -> Sequence[Mixed]:
        """In order: the token mixer, and whether a layer has experts."""
        mixers = mixers_of(self.layer_types or self.types, self.n_layers, "linear")
        return [Mixed(mixer, "moe" if kind.moe else "dense") for mixer, kind in zip(mixers, self.kinds)]


@config
class KimiLinear(LatentsAndDelta):
    """Hyperparameters of Kimi Linear, in forward order."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    dense_layers: int = key("first_k_dense_replace", 1)
    # attention
    without_rope: Literal[True] = key("mla_use_nope", True)
    # experts
    n_groups_kept: Size = key("topk_group", 1)
    routed_scale: Positive = key("routed_scaling_factor", 2.446)
    scoring: Literal["sigmoid"] = key("moe_router_activation_func", "sigmoid")

    rewritten = LatentsAndDelta.rewritten | {"linear_attn_config"}
    ignored = LatentsAndDelta.ignored | {"use_grouped_topk"}

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
        }
        raw |= {ours: inside[theirs] for ours, theirs in spellings.items() if inside.get(theirs) is not None}
        if raw.get("layer_types") is None and inside.get("full_attn_layers") is not None:
            raw["layer_types"] = layers_by_number(inside, raw.get("num_hidden_layers"))
        return raw

    @property
    def types(self):
        return ["full_attention" if i and i % 4 == 0 else "linear_attention" for i in range(self.n_layers)]

    @property
    def scale(self) -> float:
        return (self.qk_nope_head_dim + self.qk_rope_head_dim) ** -0.5

    def log_decay(self, x: Array, w: Weights) -> Array:
        """The log decay of each channel, from two low-rank matrices: [T D] -> [T H] -> [T N H]."""
        N, H = self.n_linear_heads, self.d_linear_head
        step_size = linear(linear(x, w, "f_a_proj", H), w, "f_b_proj", N * H) + w("dt_bias", N * H)
        rates = np.exp(w("A_log", 1, 1, N, 1)[0])
        return -rates * softplus(heads(step_size, N, H))

    def gate(self, x: Array, w: Weights) -> Array:
        """The gate of each head's output, from two matrices of low rank: [T D] -> [T H] -> [T N·H]."""
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


@architecture(
    "kimi_linear",
    config=KimiLinear,
    spellings=(*FORGET_GATE, (".block_sparse_moe.", ".mlp."), *NUMBERED),
    pieces=FUSED | CONVOLUTIONS,
)
def forward(w: Weights, ids: Array, c: KimiLinear, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.mixed, cache):
        x = layer(x, w_layer, cache_layer, c, kind, None)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: KimiLinear, kind: Mixed, table: RopeTable | None) -> Array:
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
    def activation(self) -> str: ...
    @property
    def norm_eps(self) -> float: ...

    def log_decay(self, x: Array, w: Weights) -> Array: ...
    def gate(self, x: Array, w: Weights) -> Array: ...


@step(Role.KIMI_DELTA_ATTENTION)
def kimi_delta_attention(x: Array, w: Weights, cache: KVCache, c: DeltaAttention) -> Array:
    """Let each token read from a memory that forgets by channel and corrects itself: [T D] -> [T N H] -> [T D].

    The memory is kept in float32, as in transformers (arXiv 2510.26692, 3).
    """
    T, N, H = x.shape[0], c.n_linear_heads, c.d_linear_head
    qkv = np.concatenate([linear(x, w, f"{part}_proj", N * H) for part in ("q", "k", "v")], axis=-1)
    qkv = activation(c.activation)(causal_conv(qkv, w, cache, "conv1d", c.d_conv, bias=False))
    q, k, v = (heads(part, N, H) for part in np.split(qkv, 3, axis=-1))
    keep = np.exp(c.log_decay(x, w.at("forget_gate")))
    y = gated_delta_rule(l2_norm(q) * H**-0.5, l2_norm(k), v, keep, sigmoid(linear(x, w, "b_proj", N)), cache)
    y = rms_norm(y, w, "o_norm", c.norm_eps) * sigmoid(heads(c.gate(x, w), N, H))
    return linear(y.reshape(T, N * H), w, "o_proj", c.d_model)
