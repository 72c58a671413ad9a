"""The vision tower of dots3-note: a ViT for images of any size, whose later layers have more and more experts.

Positions are 2D rotary embeddings; four vectors are merged for each of the text's. Source: transformers 5.24,
modeling_dots3_note.py.
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Raw, Size, activation, config, derived, fixed, key, listed, tabled
from ..errors import Problem, shorten
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    apply_rope,
    attend,
    combine,
    gelu,
    heads,
    layer_norm,
    linear,
    packed_experts,
    rms_norm,
    routing_weights,
    sigmoid_scores,
    top_k,
)
from ..steps import Role, step
from . import Grid, theta_of, tower
from .patches import AnySize, axial_rope, embed_patches, gated_maps, places, two_maps

PYRAMID = [-1] * 25 + list(range(4, 65, 4)) + [64]


@config
class Dots3Vision(AnySize):
    """Hyperparameters of dots3-note's vision tower, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size", 1536, also=("embed_dim",))
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    # layers
    n_layers: Size = key("num_hidden_layers", 42)
    n_heads: Size = key("num_attention_heads", 24, also=("num_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    bias: bool = key("attention_bias", False, also=("use_bias",))
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    d_ff: Size = key("intermediate_size", 4224)
    activation: str = key("hidden_act", "silu")
    mlp_bias: bool = key("mlp_bias", False)
    # experts
    n_experts: list[int] = key("pyramid_num_routed", lambda c: PYRAMID)
    experts_per_token: Size = key("num_experts_per_tok", 2, also=("capacity_factor",))
    scale: Positive = key("router_scaling_factor", 1.0, also=("router_scale",))
    d_ff_expert: Size = key("moe_intermediate_size", 2112)
    # merger
    merge: Size = key("spatial_merge_size", 2)
    merger_eps: Positive = fixed(1e-6)
    d_text: Size = key("adapter_out_dim", 5120)

    rewritten = frozenset({"mlp_layer_types", "per_layer_config", "num_local_experts"})
    ignored = frozenset({"adapter_in_dim", "adapter_merge_size", "is_causal"})
    checked = ("theta", "kinds")

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """A number of experts for each layer, which transformers saves by layer."""
        types, usual = listed(raw.pop("mlp_layer_types", None)), raw.pop("num_local_experts", 64)
        of_layers = tabled(raw.pop("per_layer_config", None)) or {}
        if types is None or "pyramid_num_routed" in raw:
            return raw
        tables = [tabled(of_layers.get(str(i))) or {} for i in range(len(types))]
        numbers = [table.get("num_local_experts", usual) for table in tables]
        return raw | {"pyramid_num_routed": [n if kind == "sparse" else -1 for n, kind in zip(numbers, types)]}

    def check(self) -> None:
        super().check()
        activation(self.activation)
        if len(self.n_experts) < self.n_layers or max(self.n_experts) > 10_000:
            raise Problem(
                f"pyramid_num_routed = {shorten(self.n_experts)}", "give a number of experts, or -1, for each layer"
            )
        if self.mlp_bias and any(kind != "dense" for kind in self.kinds):
            raise Problem("mlp_bias = true, and layers have experts", "set it to false: experts have no biases")

    @property
    def theta(self) -> float:
        """The base of the rotary embedding."""
        return theta_of(self.rope_parameters, 10000.0)

    @property
    def kinds(self) -> list[str]:
        """The number of experts in each layer, if any."""
        return [f"{n} experts" if n > 0 else "dense" for n in self.n_experts[: int(self.n_layers)]]


@tower("dots3_note.vision_config", config=Dots3Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Dots3Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.vision_tower")
    row, column = places(x, grid.rows, grid.columns, c.merge)
    x = embed_patches(x, tower, "patch_embed.proj", c.d_model, (c.n_channels, c.patch, c.patch), bias=True)
    x = rms_norm(x, tower, "patch_embed.norm", c.norm_eps)
    angles = axial_rope(row, column, c.d_head, c.theta)
    for kind, w_layer, _ in tower.layers("blocks", c.kinds, cache):
        x = layer(x, w_layer, c, angles, 0 if kind == "dense" else int(kind.partition(" ")[0]))
    x = layer_norm(rms_norm(x, tower, "norm", c.norm_eps), tower, "merger.ln_q", c.merger_eps)
    block = c.merge * c.merge
    x = x.reshape(x.shape[0] // block, block * c.d_model)
    return [two_maps(x, tower.at("merger"), ("mlp.0", "mlp.2"), block * c.d_model, c.d_text, gelu)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Dots3Vision, angles: RopeTable, n_experts: int) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    x = x + attention(rms_norm(x, w, "norm1", c.norm_eps), w.at("attn"), c, angles)
    y = rms_norm(x, w, "norm2", c.norm_eps)
    if n_experts:
        return x + experts(y, w.at("mlp"), c, n_experts)
    return x + gated_maps(y, w.at("mlp"), c.d_ff, c.d_model, activation(c.activation), bias=c.mlp_bias)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Dots3Vision, angles: RopeTable) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    q, k, v = (
        heads(part, c.n_heads, c.d_head)
        for part in np.split(linear(x, w, "qkv", 3 * c.d_model, bias=c.bias), 3, axis=-1)
    )
    q, k = (apply_rope(rms_norm(y, w, f"{name}_norm", c.norm_eps), angles) for y, name in ((q, "q"), (k, "k")))
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "proj", c.d_model, bias=c.bias)


@step(Role.MIXTURE_OF_EXPERTS)
def experts(x: Array, w: Weights, c: Dots3Vision, n_experts: int) -> Array:
    """Each patch through the experts with its highest scores: [P D] -> [P D]."""
    scores = sigmoid_scores(linear(x, w, "gate", n_experts))
    chosen = top_k(scores + w.buffer("e_score_correction_bias", n_experts), min(int(c.experts_per_token), n_experts))
    shares = routing_weights(scores, chosen, normalise=True, scale=c.scale)
    names = "experts.gate_up_proj", "experts.down_proj"
    return combine(packed_experts(x, chosen, w, names, n_experts, c.d_ff_expert, activation(c.activation)), shares)
