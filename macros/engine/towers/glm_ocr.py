"""The vision tower of GLM-OCR: GLM-4.1V's without a position table, with a norm on each head.

Source: transformers 5.24, modeling_glm_ocr.py.
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Size, config, derived, key
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import apply_rope, attend, heads, linear, rms_norm
from ..steps import Role, step
from . import Grid, tower
from .glm4v import Glm4Vision, downsample, merger
from .patches import axial_rope, embed_patches, gated_maps, named_activation, places


@config
class GlmOcrVision(Glm4Vision):
    """Hyperparameters of GLM-OCR's vision tower, in forward order."""

    bias: bool = key("attention_bias", True)
    d_ff: Size = key("intermediate_size")
    d_merger: Size = derived(lambda c: c.d_text * c.n_channels)


@tower("glm_ocr.vision_config", config=GlmOcrVision)
def forward(w: Weights, x: Array, grid: Grid, c: GlmOcrVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.visual")
    row, column = places(x, grid.rows, grid.columns, c.merge)
    kernel = c.n_channels, c.n_frames, c.patch, c.patch
    x = embed_patches(x, tower, "patch_embed.proj", c.d_model, kernel, bias=True)
    angles = axial_rope(row, column, c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    x = downsample(rms_norm(x, tower, "post_layernorm", c.norm_eps), tower, c)
    return [merger(x, tower.at("merger"), c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: GlmOcrVision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    x = x + attention(rms_norm(x, w, "norm1", c.norm_eps), w.at("attn"), c, angles)
    y = rms_norm(x, w, "norm2", c.norm_eps)
    return x + gated_maps(y, w.at("mlp"), c.d_ff, c.d_model, named_activation(c.activation), bias=c.bias)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: GlmOcrVision, angles: RopeTable) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    q, k, v = np.split(linear(x, w, "qkv", 3 * c.d_model, bias=c.bias), 3, axis=-1)
    q, k, v = (heads(part, c.n_heads, c.d_head) for part in (q, k, v))
    q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    mixed = attend(apply_rope(q, angles), apply_rope(k, angles), v, None, c.d_head**-0.5)
    return linear(mixed, w, "proj", c.d_model, bias=c.bias)
