"""DeepSeek-V2: latent attention, small experts in groups, and shared ones.

Source: arXiv 2405.04434; tensor names as the published files. The forward pass is the main model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np

from ..errors import Problem, shorten
from ..facts import NAMED_EXPERTS, Gguf, Mlx, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    Rope,
    apply_rope,
    apply_rope_pairs,
    causal_mask,
    combine,
    embed,
    feed_forward,
    gated_experts,
    group_limited,
    heads,
    latent_queries,
    latent_scores,
    latent_values,
    latent_weighted_sum,
    linear,
    masked,
    positions,
    rms_norm,
    rope_table,
    routing_weights,
    shared_experts,
    softmax,
    softmax_with_sink,
    top_k,
    unembed,
    yarn_mscale,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Count, Interval, Positive, Raw, Size, activation, config, fixed, key, sparse_layers
from .rope_config import OLDER_ROPE_KEYS, read_rope
from .tensor_layouts import EXPERT, FUSED

# The norms of the latents have an epsilon of their own in most models, that no config key sets.
LATENT_EPS = 1e-6


@config
class Latent(Config):
    """Hyperparameters of a model with latent attention, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    # attention
    n_heads: Size = key("num_attention_heads")
    q_lora_rank: Size | None = key("q_lora_rank", None)
    kv_lora_rank: Size = key("kv_lora_rank")
    qk_nope_head_dim: Size = key("qk_nope_head_dim")
    qk_rope_head_dim: Size = key("qk_rope_head_dim")
    v_head_dim: Size = key("v_head_dim")
    latent_eps: Positive = fixed(LATENT_EPS)
    attention_bias: bool = key("attention_bias", False)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    rope_pairs: bool = key("rope_interleave", True)
    # feed-forward
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "silu")
    # head
    tied: bool = key("tie_word_embeddings", False)

    rewritten = OLDER_ROPE_KEYS
    ignored = frozenset({"num_key_value_heads", "head_dim", "qk_head_dim"})

    def check(self) -> None:
        activation(self.activation)
        self.rope.turning(self.qk_rope_head_dim)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)

    @property
    def scale(self) -> float:
        """The scale of scores: 1 / √width of a query head, more where the rotary embedding is stretched."""
        stretch = self.rope_parameters.get("mscale_all_dim") or 0
        if isinstance(stretch, bool) or not isinstance(stretch, (int, float)) or not 0 <= stretch < 1e6:
            raise Problem(
                f"rope_scaling.mscale_all_dim = {shorten(stretch)}: expected a number, 0 or more", "correct the value"
            )
        rope = self.rope
        sharper = yarn_mscale(rope.factor, stretch) ** 2 if stretch and rope.scaling != "default" else 1.0
        return (self.qk_nope_head_dim + self.qk_rope_head_dim) ** -0.5 * sharper


@config
class LatentMoE(Latent):
    """Hyperparameters of a model with latent attention and experts, in forward order.

    d_ff is the inner width of the layers without experts, d_ff_expert that of one expert.
    """

    # layers
    dense_layers: int = key("first_k_dense_replace", 0)
    moe_layer_freq: Interval = key("moe_layer_freq", 1)
    mlp_layer_types: list[str] | None = key("mlp_layer_types", None)
    # feed-forward
    mlp_bias: bool = fixed(False)
    # experts
    n_experts: Size = key("n_routed_experts", also=("num_experts", "num_local_experts"))
    n_experts_per_token: Size = key("num_experts_per_tok")
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    routed_scale: Positive = key("routed_scaling_factor", 1.0)
    d_ff_expert: Size = key("moe_intermediate_size")
    n_shared_experts: Count = key("n_shared_experts")

    ignored = Latent.ignored | {
        "num_nextn_predict_layers",
        "num_mtp_layers",
        "ep_size",
        "rope_interleaved",
        "attention_type",
        "mtp_loss_factor",
    }

    def check(self) -> None:
        super().check()
        check_groups(self)

    @property
    def kinds(self) -> Sequence[Kind]:
        """In order: whether a layer has experts."""
        if self.mlp_layer_types is None:
            return [Kind(i >= self.dense_layers and i % self.moe_layer_freq == 0) for i in range(self.n_layers)]
        return [Kind(moe) for moe in sparse_layers(self.mlp_layer_types, self.n_layers)]


def check_groups(c: Config) -> None:
    """Raise `Problem` if a token cannot be sent to as many experts as the config says."""
    c.must_not_exceed("n_experts_per_token", "n_experts")
    c.must_divide("n_expert_groups", "n_experts")
    c.must_not_exceed("n_groups_kept", "n_expert_groups")
    groups, chosen = int(c.size("n_groups_kept")), int(c.size("n_experts_per_token"))
    left = int(c.size("n_experts")) // int(c.size("n_expert_groups")) * groups
    if chosen > left:
        raise Problem(
            f"num_experts_per_tok = {chosen} exceeds the {left} experts of topk_group = {groups} groups",
            "correct one of them",
        )


@config
class DeepSeekV2(LatentMoE):
    """Hyperparameters of DeepSeek-V2, in forward order."""

    q_lora_rank: Size | None = key("q_lora_rank", 1536)
    mlp_bias: bool = key("mlp_bias", False)
    choice: Literal["greedy", "group_limited_greedy"] = key("topk_method", "greedy")
    scoring: Literal["softmax"] = key("scoring_func", "softmax")
    rope_pairs: bool = fixed(True)

    ignored = LatentMoE.ignored | {"norm_topk_prob", "rope_interleave"}


@architecture(
    "deepseek_v2",
    config=DeepSeekV2,
    fused=FUSED,
    gguf=Gguf("deepseek2", is_latent=True),
    peft=Peft(stacked=NAMED_EXPERTS),
    mlx=Mlx(routers="own", is_written_out=True),
)
def forward(w: Weights, ids: Array, c: DeepSeekV2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: DeepSeekV2, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), bias=c.mlp_bias)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Latent, table: RopeTable | None) -> Array:
    """Let each token gather information from itself and the tokens before it, kept as latents: [T D] -> [T D]."""
    q, q_rope = queries(compress_query(x, w, c), w, c, table)
    latent, k_rope = latents(x, w, cache, c, table)
    allowed = causal_mask(cache, q, latent, Full())
    return read_out(q, q_rope, latent, k_rope, allowed, w, c)


def compress_query(x: Array, w: Weights, c: Latent) -> Array:
    """The vector that queries are made of, narrower than the token's where the config says so: [T D] -> [T Q]."""
    if c.q_lora_rank is None:
        return x
    return rms_norm(linear(x, w, "q_a_proj", c.q_lora_rank, bias=c.attention_bias), w, "q_a_layernorm", c.latent_eps)


def queries(x: Array, w: Weights, c: Latent, table: RopeTable | None):
    """Each head's query, its part for content and its part for position: [T Q] -> [T N H], [T N H']."""
    N, H, H_rope = c.n_heads, c.qk_nope_head_dim, c.qk_rope_head_dim
    both = heads(linear(x, w, "q_proj" if c.q_lora_rank is None else "q_b_proj", N * (H + H_rope)), N, H + H_rope)
    q, q_rope = np.split(both, [H], axis=-1)
    return q, turn(q_rope, c, table)


def latents(x: Array, w: Weights, cache: KVCache, c: Latent, table: RopeTable | None):
    """The cache of each token, the latent and a rotated key for all heads: [T D] -> [S R], [S H']."""
    latent, k_rope = latents_of(x, w, c, table)
    return cache.extend(Holds.LATENT, latent, Full()), cache.extend(Holds.ROPE_KEY, k_rope, Full())


def latents_of(x: Array, w: Weights, c: Latent, table: RopeTable | None):
    """Each new token's latent and rotated key: [T D] -> [T R], [T H']."""
    R, H_rope = c.kv_lora_rank, c.qk_rope_head_dim
    latent, k_rope = np.split(linear(x, w, "kv_a_proj_with_mqa", R + H_rope, bias=c.attention_bias), [R], axis=-1)
    latent = rms_norm(latent, w, "kv_a_layernorm", c.latent_eps)
    return latent, turn(k_rope[:, None, :], c, table)[:, 0]


def turn(x: Array, c: Latent, table: RopeTable | None) -> Array:
    """Rotate by position, in the layout of pairs that the config says, or without a table not: [T N H] -> [T N H]."""
    if table is None:
        return x
    return apply_rope_pairs(x, table) if c.rope_pairs else apply_rope(x, table)


def read_out(
    q: Array, q_rope: Array, latent: Array, k_rope: Array, allowed: Array | None, w: Weights, c: Latent
) -> Array:
    """Attend over latents, and read the result out: [T N H], [T N H'], [S R], [S H'], [T S] -> [T D]."""
    values = read_values_out(q, q_rope, latent, k_rope, allowed, w, c)
    return linear(
        values.reshape(values.shape[0], c.n_heads * c.v_head_dim), w, "o_proj", c.d_model, bias=c.attention_bias
    )


class LatentHeads(Protocol):
    """The sizes of heads that read latents."""

    @property
    def n_heads(self) -> int: ...
    @property
    def kv_lora_rank(self) -> int: ...
    @property
    def qk_nope_head_dim(self) -> int: ...
    @property
    def v_head_dim(self) -> int: ...
    @property
    def scale(self) -> float: ...


def read_values_out(
    q: Array,
    q_rope: Array,
    latent: Array,
    k_rope: Array,
    allowed: Array | None,
    w: Weights,
    c: LatentHeads,
    sinks: Array | None = None,
) -> Array:
    """Attend over latents, up to the heads' values: [T N H], [T N H'], [S R], [S H'], [T S] -> [T N V]."""
    N, H, V = c.n_heads, c.qk_nope_head_dim, c.v_head_dim
    to_keys_and_values = w("kv_b_proj.weight", N * (H + V), c.kv_lora_rank).reshape(N, H + V, c.kv_lora_rank)
    to_key, to_value = np.split(to_keys_and_values, [H], axis=1)
    fit = latent_scores(latent_queries(q, to_key), latent, q_rope, k_rope, c.scale)
    fit = masked(fit, allowed)
    shares = softmax(fit) if sinks is None else softmax_with_sink(fit, sinks)
    return latent_values(latent_weighted_sum(shares, latent), to_value)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: DeepSeekV2) -> Array:
    """A few experts chosen for each token, and the shared ones: [T D] -> [T k D] -> [T D]."""
    act = activation(c.activation)
    fit = softmax(linear(x, w, "gate", c.n_experts))
    allowed = fit
    if c.choice == "group_limited_greedy":
        allowed = group_limited(fit, c.n_expert_groups, c.n_groups_kept, best=1)
    chosen = top_k(allowed, c.n_experts_per_token)
    shares = routing_weights(fit, chosen, scale=c.routed_scale)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act), shares)
    return routed + shared_experts(x, w.at("shared_experts"), c.n_shared_experts * c.d_ff_expert, act, bias=c.mlp_bias)
