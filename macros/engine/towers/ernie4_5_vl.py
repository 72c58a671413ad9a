"""The vision tower of ERNIE 4.5 VL: a ViT for images of any size, whose vectors are joined four to one and projected.

They are also joined with those of a film's next frame; an image is its own next frame. Positions are 2D rotary
embeddings alone. Source: transformers 5.24, modeling_ernie4_5_vl_moe.py.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Raw, Size, config, derived, fixed, key
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import gelu, layer_norm, linear, rms_norm
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .patches import axial_rope, joint_attention, named_activation, places, two_maps
from .qwen2_vl import Qwen2Vision


@config
class Ernie45Vision(Qwen2Vision):
    """Hyperparameters of ERNIE 4.5 VL's vision tower and resampler, in forward order."""

    n_frames: Size = fixed(1)
    d_model: Size = key("hidden_size", 1280)
    n_layers: Size = key("depth", 32)
    n_heads: Size = key("num_heads", 16)
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    mlp_ratio: Positive = fixed(1.0)
    d_ff: Size = key("intermediate_size", 5120)
    # resampler
    frames_joined: Literal[2] = key("temporal_merge_size", 2)
    d_joined: Size = derived(lambda c: c.d_model * c.merge * c.merge)
    text_eps: Positive = key("text_config.rms_norm_eps", 1e-5)
    d_text: Size = key(TEXT_WIDTH)

    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    ignored = frozenset({"spatial_patch_size", "temporal_patch_size"})


@tower("ernie4_5_vl_moe.vision_config", config=Ernie45Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Ernie45Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.vision_tower")
    row, column = places(x, grid.rows, grid.columns, c.merge)
    x = linear(x, tower, "patch_embed.proj", c.d_model)
    angles = axial_rope(row, column, c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    return [resample(layer_norm(x, tower, "ln", c.norm_eps), w.at("model.resampler_model"), c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Ernie45Vision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    y = layer_norm(x, w, "norm1", c.norm_eps)
    x = x + joint_attention(y, w.at("attn"), c.n_heads, c.d_head, angles, "qkv", "proj")
    y = layer_norm(x, w, "norm2", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))


@step(Role.FEED_FORWARD)
def resample(x: Array, w: Weights, c: Ernie45Vision) -> Array:
    """One vector for the text from each block of patches of two frames: [P D] -> [P/m² m²·D] -> [P/m² O]."""
    J = c.d_joined
    x = joined(x.reshape(x.shape[0] // (c.merge * c.merge), J), w.at("spatial_linear"), J, c)
    x = joined(np.concatenate([x, x], axis=-1), w.at("temporal_linear"), J, c)
    return rms_norm(linear(x, w, "mlp", c.d_text, bias=True), w, "after_norm", c.text_eps)


def joined(x: Array, w: Weights, width: int, c: Ernie45Vision) -> Array:
    """Vectors side by side through two maps, normed: [M …] -> [M J]."""
    return layer_norm(two_maps(x, w, ("fc1", "fc2"), width, width, gelu), w, "ln", c.norm_eps)
