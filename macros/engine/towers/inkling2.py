"""The vision tower of Inkling 2: a ViT for images of any size, with a trained vector in front of the patches.

Positions are a learned table, stretched over the image, and 2D rotary embeddings of neighboring pairs; four vectors are
joined for each of the text's. Source: transformers 5.24, modeling_inkling2.py and image_processing_inkling2.py.
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Raw, Size, activation, config, derived, key
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import apply_rope_pairs, attend, heads, layer_norm, linear
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, theta_of, tower
from .patches import AnySize, axial_rope, named_activation, places, stretched_positions, two_maps


@config
class Inkling2Vision(AnySize):
    """Hyperparameters of Inkling 2's vision tower, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    patch: Size = key("patch_size", 20, also=("native_patch_size",))
    d_model: Size = key("hidden_size", 1024)
    n_position_rows: Size = key("posemb_grid_size", 32)
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    # layers
    n_layers: Size = key("num_hidden_layers", 23)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    mlp_ratio: Positive = key("mlp_ratio", 4.0)
    d_ff: Size = key("intermediate_size", lambda c: int(int(c.d_model) * c.mlp_ratio))
    activation: str = key("hidden_act", "gelu")
    # merger
    merge: Size = key("spatial_merge_size", 2, also=("adapter_merge_size",))
    d_projector: Size = key("projection_hidden_dim", 4096)
    bias: bool = key("projector_bias", False)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"layer_scale_init_value", "text_hidden_size"})
    checked = ("theta",)

    def check(self) -> None:
        super().check()
        activation(self.activation)

    @property
    def theta(self) -> float:
        """The base of the rotary embedding."""
        return theta_of(self.rope_parameters, 10000.0)

    def grid(self, height: int, width: int) -> Grid:
        block = int(self.patch) * int(self.merge)
        return Grid(*(math.ceil(side / block) * int(self.merge) for side in (height, width)))


@tower("inkling2.vision_config", "inkling2_loop.vision_config", config=Inkling2Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Inkling2Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.vision_tower")
    row, column = places(x, grid.rows, grid.columns, c.merge)
    x = linear(x, tower, "embeddings.patch_embedding", c.d_model)
    side = c.n_position_rows
    table = tower("embeddings.position_embedding.weight", side * side, c.d_model)
    x = x + stretched_positions(row, column, table, int(side), grid, to_corners=False)
    names = "class_embedding", "cls_position_embedding"
    first, place = (tower(f"embeddings.{name}", c.d_model) for name in names)
    x = np.concatenate([(first + place)[None, :], x], axis=0)
    x = layer_norm(x, tower, "pre_layernorm", c.norm_eps)
    row, column = (np.concatenate([np.zeros(1, np.int64, like=at), at + 1], axis=0) for at in (row, column))
    angles = axial_rope(column, row, c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    x, block = x[1:], c.merge * c.merge
    x = x.reshape(x.shape[0] // block, block * c.d_model)
    act = activation(c.activation)
    return [two_maps(x, tower.at("merger"), ("linear_1", "linear_2"), c.d_projector, c.d_text, act, bias=c.bias)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Inkling2Vision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others; trained shares of both halves are added: [P D] ->
    [P D]."""
    y = attention(layer_norm(x, w, "layernorm_before", c.norm_eps), w.at("self_attn"), c, angles)
    x = x + w("lambda_1", c.d_model) * y
    y = layer_norm(x, w, "layernorm_after", c.norm_eps)
    y = two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))
    return x + w("lambda_2", c.d_model) * y


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Inkling2Vision, angles: RopeTable) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head) for name in ("q_proj", "k_proj", "v_proj")
    )
    mixed = attend(apply_rope_pairs(q, angles), apply_rope_pairs(k, angles), v, None, c.d_head**-0.5)
    return linear(mixed, w, "out_proj", c.d_model, bias=True)
