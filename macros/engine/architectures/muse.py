"""Muse Glimmer and Muse Spark: windows in three layers of four, gates on the heads' values, scaled and capped scores.

Sources: the defaults of transformers' MuseGlimmerTextConfig and MuseSparkTextConfig, which name
meta-models/Muse-Glimmer-30B and meta-models/Muse-Spark-Open-816B-A42B; tensor names of transformers. Queries and keys
are normalized without weights; full-attention layers have no rotary embedding. In Spark a trained gate divides
each sum between the stream and a layer's output, and the experts work in a narrower space. The text models of
multimodal ones.
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Kind,
    NoPE,
    Rope,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    gated_experts,
    heads,
    linear,
    logistic,
    positions,
    rms_norm,
    rope_table,
    routing_weights,
    sigmoid,
    sigmoid_scores,
    soft_cap,
    top_k,
    unembed,
    unit_norm,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Size, activation, config, fixed, key, masks_of, sparse_layers
from .gguf_tables import AFTER
from .llama import Llama, feed_forward
from .otherwise import NEVER_TIED, Otherwise, theta_beside
from .rope_config import read_rope
from .tensor_layouts import EXPERT, FUSED

# What keeps the stream's share of a gated sum above 0.
LEAST_SHARE = 1e-3


@config
class MuseGlimmer(Llama):
    """Hyperparameters of Muse Glimmer, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    output_norm_eps: Positive = key("post_norm_eps", 1e-8)
    n_kv_heads: Size = key("num_key_value_heads", 2)
    d_head: Size = key("head_dim", 128)
    query_scale: Positive = key("qk_scale_factor", 3.87)
    sliding_window: Size | None = key("sliding_window", 2048)
    layer_types: list[str] = key(
        "layer_types",
        lambda c: [
            "sliding_attention" if (c.n_layers - 1 - i) % 4 else "full_attention" for i in range(int(c.n_layers))
        ],
    )
    thetas: list[float] | None = key("layer_rope_theta", None)
    mlp_bias: bool = fixed(False)
    activation: str = key("hidden_activation", "silu", also=("hidden_act",))
    head_scale: Positive = key("output_multiplier", 0.19611613513818404)
    final_cap: Positive = key("final_logit_softcapping", 20.0)

    @property
    def masks(self) -> list[Mask]:
        turns = [bool((self.n_layers - 1 - i) % 4) for i in range(int(self.n_layers))]
        if self.thetas is not None:
            if len(self.thetas) != self.n_layers:
                raise Problem(
                    f"layer_rope_theta has {len(self.thetas)} entries, and num_hidden_layers = {int(self.n_layers)}",
                    "correct one of the two",
                )
            turns = [theta != 0 for theta in self.thetas]
        masks = masks_of(self.layer_types, self.n_layers, self.sliding_window)
        return [mask if turn else NoPE(mask) for mask, turn in zip(masks, turns)]

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask."""
        return [Kind(False, mask) for mask in self.masks]


@config
class MuseSpark(MuseGlimmer):
    """Hyperparameters of Muse Spark, in forward order. d_ff is the inner width of the layers without experts."""

    n_kv_heads: Size = key("num_key_value_heads", 16)
    d_head: Size = key("head_dim", 64)
    query_scale: Positive = key("qk_scale_factor", 5.4730064863875)
    activation: str = key("hidden_act", "silu", also=("hidden_activation",))
    head_scale: Positive = key("output_multiplier", 0.1767766952966369)
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: ["sparse"] * c.n_layers)
    n_experts: Size = key("num_local_experts", also=("num_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    routed_scale: Positive = key("routed_scaling_factor", 1.0)
    d_latent: Size = key("moe_hidden_size")
    d_ff_expert: Size = key("moe_intermediate_size")
    gate_temperature: Positive = key("residual_gate_temperature", 0.3)

    otherwise = (
        NEVER_TIED,
        Otherwise("rope_theta", theta_beside(500_000), "transformers 5.24 reads the one in rope_parameters alone"),
    )

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def rope(self) -> Rope:
        """The class's own base is that of a config without a table; a table without one has transformers' usual one."""
        has_table = "rope_type" in self.rope_parameters or "type" in self.rope_parameters
        return read_rope(self.rope_parameters, theta=10_000.0 if has_table else 500_000.0)

    @property
    def kinds(self) -> list[Kind]:
        sparse = sparse_layers(self.mlp_layer_types, self.n_layers)
        return [Kind(is_sparse, mask) for is_sparse, mask in zip(sparse, self.masks)]


GGUF = Gguf("muse-glimmer", {**AFTER, "self_attn.gate_proj": "attn_gate"})


@architecture("muse_glimmer_text", config=MuseGlimmer, gguf=GGUF, windows_in_sglang=True)
@architecture("muse_spark_text", config=MuseSpark, fused=FUSED)
def forward(w: Weights, ids: Array, c: MuseGlimmer, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = unit_norm(embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model), c.norm_eps)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return soft_cap(unembed(x, w, head, c.vocab_size, last=last) * c.head_scale, c.final_cap)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: MuseGlimmer, kind: Kind, table: RopeTable) -> Array:
    """One transformer block, with a norm before and after each half: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps, offset=1)
    y = attention(y, w.at("self_attn"), cache, c, kind.mask, table)
    if isinstance(c, MuseSpark):
        x = gated_sum(x, unit_norm(y, c.output_norm_eps), w, "post_attention_residual_gate", c.gate_temperature)
    else:
        x = x + rms_norm(y, w, "post_attention_layernorm", c.output_norm_eps, offset=1)
    y = rms_norm(x, w, "pre_feedforward_layernorm", c.norm_eps, offset=1)
    if not isinstance(c, MuseSpark):
        y = feed_forward(y, w.at("mlp"), c)
        return x + rms_norm(y, w, "post_feedforward_layernorm", c.output_norm_eps, offset=1)
    y = mixture_of_experts(y, w.at("mlp"), c) if kind.moe else feed_forward(y, w.at("mlp"), c)
    y = scaled_norm(y, w, "post_feedforward_layernorm", c.output_norm_eps)
    return gated_sum(x, y, w, "post_feedforward_residual_gate", c.gate_temperature)


@step(Role.GATED_SUM)
def gated_sum(x: Array, y: Array, w: Weights, name: str, temperature: float) -> Array:
    """The stream and an output, divided element by element by a trained gate: [T D], [T D], [D] -> [T D].

    β = σ(g / temperature) of the output and √((1 − β)(1 + β)) of the stream, so that a sum keeps its size.
    """
    share = logistic(w(f"{name}.gate", x.shape[1]) / temperature)
    return np.sqrt(np.maximum((1 - share) * (1 + share), LEAST_SHARE)) * x + share * y


@step(Role.UNIT_NORM)
def scaled_norm(x: Array, w: Weights, name: str, eps: float) -> Array:
    """Scale each number, then divide each vector by its root mean square: [… D], [D] -> [… D]."""
    x = x * (w(f"{name}.weight", x.shape[-1]) + 1)
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: MuseGlimmer, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it, through a gate: [T D] -> [T D]."""
    N, K, H, bias = c.n_heads, c.n_kv_heads, c.d_head, c.attention_bias
    q = unit_norm(heads(linear(x, w, "q_proj", N * H, bias=bias), N, H), c.norm_eps) * c.query_scale
    k = unit_norm(heads(linear(x, w, "k_proj", K * H, bias=bias), K, H), c.norm_eps)
    v = heads(linear(x, w, "v_proj", K * H, bias=bias), K, H)
    if not isinstance(mask, NoPE):
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5)
    if isinstance(c, MuseSpark):
        mixed = unit_norm(heads(mixed, N, H), c.norm_eps).reshape(x.shape[0], N * H)
    return linear(mixed * sigmoid(linear(x, w, "gate_proj", N * H)), w, "o_proj", c.d_model, bias=bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: MuseSpark) -> Array:
    """A few experts chosen for each token, between two latent projections: [T D] -> [T k L] -> [T D].

    The stored bias balances the experts' load; the routing weights exclude it.
    """
    fit = sigmoid_scores(linear(x, w, "gate", c.n_experts) * c.head_scale)
    chosen = top_k(fit + w.buffer("gate.e_score_correction_bias", c.n_experts), c.n_experts_per_token)
    shares = routing_weights(fit, chosen, normalise=True, scale=c.routed_scale)
    narrow = rms_norm(linear(x, w, "pre_expert_proj", c.d_latent), w, "pre_expert_norm", c.norm_eps, offset=1)
    y = gated_experts(narrow, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, activation(c.activation))
    y = scaled_norm(y, w, "experts.post_expert_norm", c.output_norm_eps)
    return linear(combine(y, shares), w, "post_expert_proj", c.d_model)
